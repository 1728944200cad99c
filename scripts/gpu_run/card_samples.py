"""What nvidia-smi says of the first card while something runs.

Part of run_all.py. Python 3 standard library only.
"""

import statistics
import subprocess
import tempfile

import find_libraries

# Utilization, once a second.
ARGUMENTS = ["dmon", "-i", "0", "-s", "u", "-d", "1"]
# The percents of a second in which a kernel ran.
BUSY = "sm"
FEWEST = 3


class CardSamples:
    """Samples while its block runs:

        with CardSamples() as samples:
            ...
        samples.busy_percent()
    """

    def __init__(self):
        self._program = find_libraries.program("nvidia-smi")
        self._process = None
        self._output = None
        self._rows = []

    def __enter__(self):
        if self._program is not None:
            self._output = tempfile.TemporaryFile("w+")
            self._process = subprocess.Popen(
                [self._program, *ARGUMENTS], stdin=subprocess.DEVNULL,
                stdout=self._output, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait()
        self._output.seek(0)
        self._rows = parse(self._output.read())
        self._output.close()

    def busy_percent(self):
        """The median of the seconds in which the card was busy. Raises
        ValueError."""
        if self._program is None:
            raise ValueError("no nvidia-smi here")
        values = [row[BUSY] for row in self._rows if row.get(BUSY, 0) > 0]
        if len(values) < FEWEST:
            raise ValueError("nvidia-smi dmon gave %d samples of a busy card; "
                             "wanted %d" % (len(values), FEWEST))
        return statistics.median(values)


def parse(text):
    """[{column: number}]; what is no number is left out."""
    rows = []
    columns = []
    for line in text.splitlines():
        words = line.lstrip("#").split()
        if line.startswith("#"):
            # Two lines: names and units.
            if words and words[0] == "gpu":
                columns = words
            continue
        rows.append({name: float(word) for name, word in zip(columns, words)
                     if word.isdigit()})
    return rows
