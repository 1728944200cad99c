"""python -m muster ps|ctl ...: the packaged ps_server and musterctl."""

import os
import sys
from typing import List

from muster._errors import ConfigError
from muster._programs import path_of

_PROGRAMS = {"ps": "ps_server", "ctl": "musterctl"}
_USAGE = """usage: python -m muster ps FLAG...     a ps task (ps_server)
       python -m muster ctl VERB ...  looks at runs and ps tasks (musterctl)
with --help each says more."""


def main(arguments: List[str]) -> int:
    """Becomes the program; returns only where it cannot."""
    if arguments[:1] in (["--help"], ["-h"]):
        print(_USAGE)
        return 0
    if not arguments or arguments[0] not in _PROGRAMS:
        print("python -m muster: wanted ps or ctl, found %s\n%s" %
              (repr(arguments[0]) if arguments else "nothing", _USAGE),
              file=sys.stderr)
        return 2
    try:
        path = path_of(_PROGRAMS[arguments[0]])
    except ConfigError as error:
        print("python -m muster: %s" % error, file=sys.stderr)
        return error.exit_code
    os.execv(path, [path, *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
