"""Python test programs as Bazel tests."""

def integration_test(
        name,
        data = [],
        size = "medium",
        tags = [],
        target_compatible_with = []):
    """Runs NAME.py, which uses harness.py, with `data` beside it.

    Args:
      name: the stem of the Python file.
      data: what it starts or reads, such as "//worker".
      size: Bazel's, which sets the time limit (medium: 5 minutes).
      tags: Bazel's.
      target_compatible_with: Bazel's.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/integration:run_python.sh"],
        args = [native.package_name().replace("/", ".") + "." + name],
        data = [
            name + ".py",
            "//tests/integration:harness.py",
        ] + data,
        tags = tags,
        target_compatible_with = target_compatible_with,
    )
