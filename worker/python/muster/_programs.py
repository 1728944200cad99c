"""The programs that are in the wheel beside libmuster.so."""

import os

from muster._errors import ConfigError


def path_of(name: str) -> str:
    """Of "ps_server" or "musterctl". Errors: ConfigError if it is not there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.access(path, os.X_OK):
        raise ConfigError("there is no program '%s': the package was copied "
                          "without it. Install Muster's wheel" % path)
    return path
