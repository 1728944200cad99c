"""Mistakes and failures that end a sweep with a message."""

import difflib
import errno


class Failure(Exception):
    """The text says what was wanted, what was found, what to do."""

    def __init__(self, text, exit_code=2):
        super().__init__(text)
        self.exit_code = exit_code


def exit_code_of(error):
    """Of a file's error, or a value's: a full disk is no mistake."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return 138 if getattr(error, "errno", None) in full else 2


def nearest(name, known):
    """"; did you mean 'X'? known: X, Y", for the end of a message."""
    close = difflib.get_close_matches(name, known, n=1)
    return "; %sknown: %s" % (
        "did you mean '%s'? " % close[0] if close else "", ", ".join(known))
