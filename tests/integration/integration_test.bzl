"""Python test programs as Bazel tests."""

def integration_test(
        name,
        data = [],
        programs = ["//ps_server", "//worker"],
        size = "medium",
        tags = [],
        target_compatible_with = [],
        runner = "//tests/integration:run_python.sh",
        args = []):
    """Runs NAME.py, which uses harness.py, with `programs` and `data` beside it.

    Args:
      name: the stem of the Python file.
      data: what it reads, and what it starts besides `programs`.
      programs: those of the two binaries that it starts.
      size: Bazel's, which sets the time limit (medium: 5 minutes).
      tags: Bazel's, besides "integration".
      target_compatible_with: Bazel's.
      runner: the script that starts it.
      args: the script's, after the program's module.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [runner],
        args = [native.package_name().replace("/", ".") + "." + name] + args,
        data = [
            name + ".py",
            "//tests/integration:harness.py",
        ] + programs + data,
        tags = ["integration"] + tags,
        target_compatible_with = target_compatible_with,
    )

def _package_test(name, requirements, data, args = [], tags = [], **kwargs):
    """As integration_test, of the package muster, in a Python with what the
    file `requirements` lists."""
    integration_test(
        name = name,
        data = data + [
            requirements,
            "//scripts/base:python_environment.py",
            "//worker/python:package",
        ],
        runner = "//tests/integration:run_numpy.sh",
        args = args,
        tags = tags + ["no-sandbox", "requires-network"],
        **kwargs
    )

def numpy_test(name, data = [], **kwargs):
    """As integration_test, of the package muster, in a Python with NumPy.

    Not in the sandbox: the Python environment is kept in the user's cache.

    Args:
      name: the stem of the Python file.
      data: as integration_test's, besides the package.
      **kwargs: passed on.
    """
    _package_test(name, "//tests/integration:requirements.txt", data, **kwargs)

def torch_test(name, data = [], **kwargs):
    """As integration_test, of muster.torch, in a Python with PyTorch: one of
    `scripts/test.sh --full`, which lists them.

    Args:
      name: the stem of the Python file.
      data: as integration_test's, besides the package.
      **kwargs: passed on.
    """
    _package_test(
        name,
        "//tests/benchmark/peers:torch_requirements.txt",
        data,
        args = ["tests/benchmark/peers/torch_requirements.txt"],
        tags = ["full", "manual"],
        **kwargs
    )
