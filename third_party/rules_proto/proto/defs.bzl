"""Bazel's native proto rules under the names that its own tools load."""

proto_library = native.proto_library
proto_lang_toolchain = native.proto_lang_toolchain
