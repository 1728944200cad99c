"""The parameters of a living job, by muster_read_... of muster.h."""

import ctypes
import warnings
from typing import Any, Callable, Dict, List

import numpy

from muster import _library
from muster._errors import of_kind
from muster._memory import pointers_to
from muster._saved_table import Parameters
from muster._spec import Settings, program_text

# Between two looks for Ctrl-C.
_WAIT_MS = 500


def read_job(settings: Settings) -> Parameters:
    """The tensors of the job at `settings`, by name. Errors: `load`'s."""
    library = _library.load()
    kind = ctypes.c_int(0)
    reader = library.muster_read_open(program_text(settings),
                                      ctypes.byref(kind))
    if not reader:
        raise of_kind(kind.value, _library.words())
    try:
        arrays = _arrays(library, reader)
        values = pointers_to([array.ctypes.data for array in arrays.values()])
        _wait_for(lambda: library.muster_read_values(reader, _WAIT_MS, values))
        _warn_of_tables(library, reader)
        return Parameters(arrays, {})
    finally:
        library.muster_read_close(reader)


def _arrays(library: Any, reader: int) -> Dict[str, numpy.ndarray]:
    """An empty one for each tensor."""
    tensors = ctypes.POINTER(_library.Tensor)()
    count = ctypes.c_int(0)
    _wait_for(lambda: library.muster_read_tensors(
        reader, _WAIT_MS, ctypes.byref(tensors), ctypes.byref(count)))
    arrays: Dict[str, numpy.ndarray] = {}
    for i in range(count.value):
        shape: List[int] = tensors[i].shape[:tensors[i].rank]
        arrays[tensors[i].name.decode("utf-8")] = numpy.empty(
            shape, numpy.float32)
    return arrays


def _warn_of_tables(library: Any, reader: int) -> None:
    names = ctypes.POINTER(ctypes.c_char_p)()
    count = ctypes.c_int(0)
    _wait_for(lambda: library.muster_read_tables(
        reader, ctypes.byref(names), ctypes.byref(count)))
    if count.value:
        warnings.warn("load: rows of tables are not read of a living job (%s): "
                      "load(train_dir) has those of its checkpoints" % ", ".join(
                          "'%s'" % name.decode("utf-8")
                          for name in names[:count.value]), stacklevel=4)


def _wait_for(call: Callable[[], int]) -> None:
    """Calls until there is an end."""
    while True:
        kind = call()
        if kind == _library.OK:
            return
        if kind != _library.NOT_YET:
            raise of_kind(kind, _library.words())
