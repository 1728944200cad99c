"""What nvidia-smi says of the first card while something runs.

Part of run_all.py. Python 3 standard library only.
"""

import os
import shutil
import statistics
import subprocess
import tempfile

import find_libraries
import processes

# The percents of a sample's time in which a kernel ran, and MHz.
BUSY, CLOCK = "utilization.gpu", "clocks.sm"
PERIOD_MS = 250
FEWEST = 3


def arguments():
    """Of nvidia-smi, for the first card that this process may use."""
    told = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return ["--id=" + (told.split(",")[0].strip() or "0"),
            "--query-gpu=%s,%s" % (BUSY, CLOCK),
            "--format=csv,noheader,nounits", "--loop-ms=%d" % PERIOD_MS]


class CardSamples:
    """Samples while its block runs:

        with CardSamples() as samples:
            ...
        samples.busy()
    """

    def __init__(self):
        self._program = find_libraries.program("nvidia-smi")
        self._why = None if self._program else "no nvidia-smi here"
        self._child = None
        self._output = None
        self._text = ""

    def __enter__(self):
        if self._program is None:
            return self
        # Without it, what is not printed yet is lost at the end.
        unbuffered = shutil.which("stdbuf")
        try:
            self._output = tempfile.TemporaryFile()
            self._child = processes.Child(
                [*([unbuffered, "-oL"] if unbuffered else []), self._program,
                 *arguments()], self._output)
        except (OSError, subprocess.SubprocessError) as error:
            self._why = "nvidia-smi cannot be started: %s" % error
        return self

    def __exit__(self, *_):
        if self._child is not None:
            self._end()
        if self._output is not None:
            self._output.close()

    def _end(self):
        try:
            self._child.ask_to_end()
        finally:
            if not self._child.end():
                self._why = "nvidia-smi is unkillable"
            self._text = processes.ends_of(self._output)

    def busy(self):
        """Fields of a row: the median of the samples in which the card was
        busy, and of the clock in those. Raises ValueError."""
        if self._why is not None:
            raise ValueError(self._why)
        rows = [row for row in parse(self._text) if row[0] > 0]
        if len(rows) < FEWEST:
            raise ValueError(
                "nvidia-smi gave %d samples of a busy card; wanted %d; it "
                "printed last: %s" % (len(rows), FEWEST,
                                      self._text.strip()[-200:] or "nothing"))
        clocks = [clock for _, clock in rows if clock is not None]
        return {"value": statistics.median(busy for busy, _ in rows),
                "samples": len(rows),
                "sm_clock_mhz": statistics.median(clocks) if clocks else None}


def parse(text):
    """[(percent busy, MHz or None)]; lines that tell no percent are left
    out."""
    rows = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == 2 and words[0].isdigit():
            rows.append((float(words[0]),
                         float(words[1]) if words[1].isdigit() else None))
    return rows
