"""Locks of folders, also where the file system has none."""

import errno
import fcntl
import sys

# What a file system without locks answers.
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS,
            errno.EINVAL)


def take_lock(file, operation, flag):
    """flock, and a line where the file system has none. Raises OSError."""
    try:
        fcntl.flock(file, operation)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        print("%s: this file system has no locks (%s): start no second one "
              "there meanwhile" % (flag, error.strerror), file=sys.stderr)
