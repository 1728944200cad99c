"""The gradient codecs, one line each. bf16.cc and bf16_ref.h show the form."""

CODECS = [
    "bf16",
    "fp16",
]
