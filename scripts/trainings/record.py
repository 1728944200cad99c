"""One of several trainings, and its folder, such as trial-0007/:

    trial.json     this record, replaced as a whole at each change
    worker.log     all that its worker has printed
    run/           the worker's --train_dir
"""

import json
import math
import os
import re


class Record:
    """A subclass gives the names, and the states in which one has ended.

    RUNNING is also what one was whose driver was killed; INTERRUPTED, one that
    was ended with it. Those two go on when the driver does.
    """

    KIND = ""
    DIGITS = 4
    ENDED = ("DONE", "FAILED")
    # Members that are not in the file.
    UNSAVED = ("folder",)

    def __init__(self, parent, number):
        self.folder = os.path.join(parent, "%s-%0*d" % (
            self.KIND, self.DIGITS, number))
        self.number = number
        self.state = "RUNNING"
        # {field: text}
        self.parameters = {}
        self.device = ""
        # What it has on the ps tasks of a cluster; "" where it has nothing.
        self.namespace = ""
        self.command = []
        # The numbers of result.json; None: it has the figure, and nothing was
        # measured for it.
        self.figures = {}
        self.seconds = 0.0
        self.error = ""
        # Of its worker, the last time that it ran.
        self.exit_code = 0

    @property
    def train_dir(self):
        return os.path.join(self.folder, "run")

    @property
    def ended(self):
        return self.state in self.ENDED

    def described(self):
        return " ".join("%s=%s" % item for item in self.parameters.items())

    def save(self):
        os.makedirs(self.folder, exist_ok=True)
        record = {name: value for name, value in vars(self).items()
                  if name not in self.UNSAVED}
        write_whole(os.path.join(self.folder, self.KIND + ".json"),
                    json.dumps(record, indent=1) + "\n")

    def read_result(self):
        """Takes the numbers of result.json; the text of an error, or ""."""
        path = os.path.join(self.train_dir, "result.json")
        try:
            result = read_object(path)
        except (OSError, ValueError) as error:
            return "cannot read the result: %s" % error
        self.figures = {name: value for name, value in result.items()
                        if value is None or is_number(value)}
        return ""

    @classmethod
    def load_all(cls, parent, *more):
        """Those that are there, by number, each made with `more`. Raises
        OSError, ValueError."""
        records = []
        for name in sorted(os.listdir(parent)):
            path = os.path.join(parent, name, cls.KIND + ".json")
            found = re.fullmatch(r"%s-(\d{%d,})" % (cls.KIND, cls.DIGITS), name)
            if found and os.path.exists(path):
                record = cls(parent, int(found.group(1)), *more)
                vars(record).update(read_object(path, (
                    "; without the folder %s it is trained again" %
                    os.path.dirname(path))))
                records.append(record)
        return sorted(records, key=lambda one: one.number)


def is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool) and
            math.isfinite(value))


def read_object(path, advice=""):
    """The JSON object in a file. Raises OSError; ValueError, which names it."""
    with open(path, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise ValueError("%s: no JSON, or cut short: %s%s" % (
                path, error, advice)) from None
    if not isinstance(found, dict):
        raise ValueError("%s: wanted a JSON object%s" % (path, advice))
    return found


def write_whole(path, content):
    """A reader sees the old file or the new one. `content`: text or bytes."""
    if isinstance(content, str):
        content = content.encode("utf-8")
    with open(path + ".new", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
