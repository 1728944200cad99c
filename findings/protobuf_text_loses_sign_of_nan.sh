#!/usr/bin/env bash
# protobuf 6.33.1 (PyPI): a NaN loses its sign in text format and in JSON. x86
# makes NaNs whose sign bit is set (0.0 / 0.0, inf - inf); MessageToString prints
# "nan", MessageToJson "NaN", and Parse gives the one without the sign. So a
# message that was written as text and parsed is equal by its text and by
# isnan, but not by its bytes: a checksum of SerializeToString, kept beside the
# text, calls an undamaged file damaged. C++ 3.21 does the same. The guides of
# both formats name NaN and say nothing of its bits.
# https://protobuf.dev/reference/protobuf/textformat-spec/
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install \
  protobuf==6.33.1
"$folder/venv/bin/python" - <<'PYTHON'
import struct

import google.protobuf
from google.protobuf import json_format, text_format, wrappers_pb2

(nan,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))
message = wrappers_pb2.DoubleValue(value=nan)
written = message.SerializeToString()
read = {
    "text": text_format.Parse(text_format.MessageToString(message),
                              wrappers_pb2.DoubleValue()),
    "JSON": json_format.Parse(json_format.MessageToJson(message),
                              wrappers_pb2.DoubleValue()),
}
print("protobuf %s: written %s" % (google.protobuf.__version__, written.hex()))
for name, parsed in read.items():
    print("by %s: %s" % (name, parsed.SerializeToString().hex()))

# Seen: written 09000000000000f8ff, by text and JSON 09000000000000f87f.
assert wrappers_pb2.DoubleValue.FromString(written).SerializeToString() == written
for parsed in read.values():
    assert parsed.SerializeToString() == written[:-1] + b"\x7f"
PYTHON
