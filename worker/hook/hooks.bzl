"""The hooks that register themselves, one line each, by their source file.

README.md shows how to write one; tests/worker/hook/BUILD reads the same list.
"""

HOOKS = [
    "dropped_steps",
    "tensor_log",
]
