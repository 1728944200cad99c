"""The CUDA kernels, compiled by g++ for tests."""

load("//worker/backend:cuda.bzl", "CUDA_ONLY")

def kernels_on_host(name, kernels, package, deps):
    """A cc_library with the launchers of kernels that run in host memory.

    To be linked in the place of what nvcc makes of them.

    Args:
      name: as in cc_library.
      kernels: names of .cu files, without the ending.
      package: where they are: "worker/backend/cuda".
      deps: what they include, and the target that exports them.
    """
    for kernel in kernels:
        native.genrule(
            name = kernel + "_on_host",
            outs = [kernel + "_on_host.cc"],
            cmd = "printf '#include \"%%s\"\\n' %s %s > $@" % (
                "tests/worker/backend/cuda/kernel_on_host.h",
                package + "/" + kernel + ".cu",
            ),
            target_compatible_with = CUDA_ONLY,
        )
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [kernel + "_on_host.cc" for kernel in kernels],
        # Only launchers call them, which a linker would see too late.
        alwayslink = True,
        linkstatic = True,
        target_compatible_with = CUDA_ONLY,
        visibility = ["//tests:__subpackages__"],
        deps = deps,
    )
