"""Mistakes and failures that end a sweep with a message."""

import difflib


class Failure(Exception):
    """The text says what was wanted, what was found, what to do."""

    def __init__(self, text, exit_code=2):
        super().__init__(text)
        self.exit_code = exit_code


def nearest(name, known):
    """"; did you mean 'X'? known: X, Y", for the end of a message."""
    close = difflib.get_close_matches(name, known, n=1)
    return "; %sknown: %s" % (
        "did you mean '%s'? " % close[0] if close else "", ", ".join(known))
