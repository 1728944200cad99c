"""Memory that libmuster reads and writes."""

import ctypes
from typing import Any, Optional, Sequence, Union

import numpy

from muster._errors import ConfigError

# Row-major float32 of the tensor's shape, that may be written; or its address.
Memory = Union[numpy.ndarray, int]


def checked_address(what: str, shape: Sequence[int], memory: Memory,
                    writable: bool) -> int:
    """The address of float32 memory of that shape. Errors: ConfigError."""
    if isinstance(memory, int):
        return memory
    if not isinstance(memory, numpy.ndarray):
        raise ConfigError("%s: wanted a numpy array, found %s" %
                          (what, type(memory).__name__))
    if memory.dtype != numpy.float32:
        raise ConfigError(
            "%s: wanted float32, found %s: make it .astype(numpy.float32)" %
            (what, memory.dtype))
    if tuple(memory.shape) != tuple(shape):
        raise ConfigError("%s: wanted the shape %s, found %s" %
                          (what, list(shape), list(memory.shape)))
    if not memory.flags.c_contiguous:
        raise ConfigError(
            "%s: wanted a contiguous array (row-major), found strides %s: "
            "make it numpy.ascontiguousarray" % (what, memory.strides))
    if writable and not memory.flags.writeable:
        raise ConfigError("%s: the array cannot be written, and new values "
                          "are to be put there: make it .copy()" % what)
    if memory.flags.writeable and memory.size:
        # A quarter of the time that .ctypes takes.
        buffer: Any = memory
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    return int(memory.ctypes.data)


def pointers_to(addresses: Sequence[Optional[int]]) -> Any:
    """A C array of them."""
    return (ctypes.c_void_p * len(addresses))(*addresses)
