"""Python test programs as Bazel tests."""

def integration_test(
        name,
        data = [],
        programs = ["//ps_server", "//worker"],
        size = "medium",
        tags = [],
        target_compatible_with = []):
    """Runs NAME.py, which uses harness.py, with `programs` and `data` beside it.

    Args:
      name: the stem of the Python file.
      data: what it reads, and what it starts besides `programs`.
      programs: those of the two binaries that it starts.
      size: Bazel's, which sets the time limit (medium: 5 minutes).
      tags: Bazel's, besides "integration".
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
        ] + programs + data,
        tags = ["integration"] + tags,
        target_compatible_with = target_compatible_with,
    )
