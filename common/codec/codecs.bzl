"""The sources of gradient codecs. half_codecs.cc and half_codecs_ref.h show the
form."""

CODECS = [
    "half_codecs",
]
