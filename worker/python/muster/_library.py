"""libmuster.so by ctypes: muster.h, word for word."""

import ctypes
import os
from typing import Any, Optional

from muster._errors import ConfigError

# The version of muster.h that this package is written for.
ABI = 4

OK = 0
NOT_YET = 7
JOB_OVER = 8
WAITING, STEP, OVER = 0, 1, 2

_Job = ctypes.c_void_p
_Pointers = ctypes.POINTER(ctypes.c_void_p)


class Step(ctypes.Structure):
    """muster_step."""

    _fields_ = [
        ("state", ctypes.c_int32),
        ("step", ctypes.c_int64),
        ("global_step", ctypes.c_int64),
        ("model_epoch", ctypes.c_int64),
        ("leases", ctypes.c_int32),
        ("staleness", ctypes.c_double),
        ("dropped", ctypes.c_int32),
        ("has_values", ctypes.c_int32),
    ]


class Report(ctypes.Structure):
    """muster_report."""

    _fields_ = [
        ("loss", ctypes.c_double),
        ("examples", ctypes.c_int64),
        ("correct", ctypes.c_int64),
        ("learning_rate_factor", ctypes.c_double),
    ]


class Task(ctypes.Structure):
    """muster_task."""

    _fields_ = [
        ("job", ctypes.c_char * 16),
        ("index", ctypes.c_int32),
        ("is_chief", ctypes.c_int32),
        ("num_ps", ctypes.c_int32),
        ("num_workers", ctypes.c_int32),
    ]


class Tensor(ctypes.Structure):
    """muster_tensor."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
    ]


_Reader = ctypes.c_void_p
_FUNCTIONS = {
    "muster_version": (ctypes.c_char_p, []),
    "muster_abi": (ctypes.c_int, []),
    "muster_error": (ctypes.c_char_p, []),
    "muster_resolve": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(Task)]),
    "muster_start": (_Job, [ctypes.c_char_p, _Pointers,
                            ctypes.POINTER(ctypes.c_int)]),
    "muster_await": (ctypes.c_int, [_Job, ctypes.c_int, ctypes.POINTER(Step)]),
    "muster_rows": (ctypes.c_int64, [_Job, ctypes.c_int, ctypes.c_void_p,
                                     ctypes.c_int64,
                                     ctypes.POINTER(ctypes.c_int64)]),
    "muster_push": (ctypes.c_int, [_Job, _Pointers, ctypes.POINTER(Report)]),
    "muster_push_tensor": (ctypes.c_int, [_Job, ctypes.c_int, ctypes.c_void_p,
                                          ctypes.POINTER(Report)]),
    "muster_pull_rows": (ctypes.c_int, [
        _Job, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
        ctypes.c_int]),
    "muster_push_rows": (ctypes.c_int, [
        _Job, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]),
    "muster_first_rows": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]),
    "muster_stop": (ctypes.c_int, [_Job, ctypes.c_int]),
    "muster_save": (ctypes.c_int, [_Job]),
    "muster_log": (ctypes.c_int, [_Job, ctypes.c_char_p, ctypes.c_double]),
    "muster_close": (ctypes.c_int, [_Job]),
    "muster_read_open": (_Reader, [ctypes.c_char_p,
                                   ctypes.POINTER(ctypes.c_int)]),
    "muster_read_tensors": (ctypes.c_int, [
        _Reader, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(Tensor)),
        ctypes.POINTER(ctypes.c_int)]),
    "muster_read_values": (ctypes.c_int, [_Reader, ctypes.c_int, _Pointers]),
    "muster_read_tables": (ctypes.c_int, [
        _Reader, ctypes.POINTER(ctypes.POINTER(ctypes.c_char_p)),
        ctypes.POINTER(ctypes.c_int)]),
    "muster_read_close": (ctypes.c_int, [_Reader]),
}

_loaded: Optional[Any] = None


def _path() -> str:
    """The library of the wheel, else that of a build beside the package."""
    package = os.path.dirname(os.path.abspath(__file__))
    for folder in (package, os.path.dirname(package)):
        path = os.path.join(folder, "libmuster.so")
        if os.path.exists(path):
            return path
    raise ConfigError(
        "loading libmuster.so: it is not in '%s'. The package was copied "
        "without it: install Muster's wheel" % package)


def _mode() -> int:
    """TensorFlow shows its own protobuf to all: ours is looked for first, but
    where an allocator or a sanitizer is preloaded, which ours would pass by."""
    if os.environ.get("LD_PRELOAD"):
        return ctypes.DEFAULT_MODE
    return ctypes.DEFAULT_MODE | getattr(os, "RTLD_DEEPBIND", 0)


def _open(path: str) -> Any:
    try:
        library = ctypes.CDLL(path, _mode())
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ConfigError(
            "loading '%s': %s. Install package and library together, from one "
            "wheel" % (path, error)) from None
    return library


def use(library: Optional[Any]) -> None:
    """Another object with the functions of muster.h, for tests; None: the
    packaged library again. Errors: ConfigError for another version."""
    global _loaded  # pylint: disable=global-statement
    if library is not None and library.muster_abi() != ABI:
        raise ConfigError(
            "libmuster.so (%s) has version %d of its interface, this package "
            "is written for version %d: install package and library together, "
            "from one wheel" % (library.muster_version().decode(),
                                library.muster_abi(), ABI))
    _loaded = library


def load() -> Any:
    """libmuster.so, opened once. Errors: ConfigError if it is not there, or of
    another version than this package."""
    if _loaded is None:
        use(_open(_path()))
    return _loaded


def words() -> str:
    """This thread's last error."""
    return str(load().muster_error(), "utf-8", "replace")
