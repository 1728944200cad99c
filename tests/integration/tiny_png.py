"""Writes PNG files without a library."""

import struct
import zlib


def _chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))


def write(path, width, height, pixels):
    """pixels: numbers from 0 to 255, row by row; width * height of them are
    grey, three times as many R, G, B."""
    channels = len(pixels) // (width * height)
    line = width * channels
    rows = b"".join(
        b"\0" + bytes(pixels[y * line:(y + 1) * line]) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8,
                         2 if channels == 3 else 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) +
                   _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b""))
