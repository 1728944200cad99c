"""Reads and writes safetensors files with nothing but the standard library.

The format is in common/checkpoint/README.md. safetensors_test.py shows the
same files to the safetensors package itself.
"""

import json
import struct


def write(path, tensors):
    """`tensors`: name -> (dtype, shape, bytes), in the order of their bytes."""
    header = {}
    end = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def read(path):
    """Name -> (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        contents = file.read()
    length = struct.unpack("<Q", contents[:8])[0]
    header = json.loads(contents[8:8 + length])
    data = contents[8 + length:]
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def floats(values):
    return struct.pack("<%df" % len(values), *values)
