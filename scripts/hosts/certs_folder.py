"""A folder of certificates that is only ever replaced as a whole.

DIR is a link to a folder beside it, .DIR.XXXXXXXX. A change is made in a copy;
then the link is swapped, so that a reader sees the old files or the new ones,
and a change that fails leaves nothing.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile

from base.failure import Failure
from base.folder_lock import take_lock


def check_new(path):
    if os.path.islink(path) or os.path.isdir(path) and os.listdir(path):
        raise Failure("--certs_dir=%s: there is something already; wanted a "
                      "new folder" % path)


@contextlib.contextmanager
def replaced(path):
    """Gives a copy of the folder (an empty one, if there is none) to change."""
    path = os.path.abspath(path)
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    if os.path.exists(path) and not os.path.islink(path):
        if not os.path.isdir(path) or os.listdir(path):
            raise Failure("--certs_dir=%s: wanted what `muster certs init` "
                          "made: a link to a folder" % path)
        os.rmdir(path)
    lock = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    new = None
    try:
        # Two changes at once would lose one. The lock is gone with its holder.
        take_lock(lock, fcntl.LOCK_EX, "--certs_dir=%s" % path)
        old = os.path.realpath(path)
        new = tempfile.mkdtemp(prefix=".%s." % name, dir=parent)
        if os.path.isdir(old):
            shutil.copytree(old, new, dirs_exist_ok=True)
        os.chmod(new, 0o755)
        yield new
        link = new + ".link"
        os.symlink(os.path.basename(new), link)
        os.replace(link, path)
        new = None
        if os.path.dirname(old) == os.path.realpath(parent) and old != path:
            shutil.rmtree(old, ignore_errors=True)
    finally:
        if new is not None:
            shutil.rmtree(new)
        os.close(lock)
