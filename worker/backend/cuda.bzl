"""CUDA C++ as Bazel rules: nvcc compiles the kernels, g++ links them."""

# Turing, Ampere and Hopper as machine code; PTX for what comes after them.
_ARCHITECTURES = " ".join([
    "-gencode arch=compute_75,code=sm_75",
    "-gencode arch=compute_80,code=sm_80",
    "-gencode arch=compute_90,code=[sm_90,compute_90]",
])

# 2810: nvcc's front end takes `status = F();` of a [[nodiscard]] type for an
# ignored value; g++, which compiles the host half, tells them apart.
_FLAGS = " ".join([
    "-std=c++17",
    "-O3",
    # The standard library's constexpr functions, and ours, in kernels.
    "--expt-relaxed-constexpr",
    "--Werror all-warnings",
    "-diag-suppress 2810",
    "-Xcompiler=-fPIC,-Wall",
    "-I.",
])

# Targets that need the toolkit are skipped without --config=cuda.
CUDA_ONLY = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["//third_party/cuda:unavailable"],
})

def cuda_library(name, srcs, hdrs = [], kernel_hdrs = [], deps = [], visibility = None):
    """A cc_library whose sources are .cu files.

    Exists with --config=cuda only. nvcc is taken from PATH or /usr/local/cuda.
    It compiles all sources as one: it spends its time on headers, once for each
    architecture (nine kernels: 10 s of CPU instead of 55). So names in unnamed
    namespaces are unique in the library.

    Args:
      name: as in cc_library.
      srcs: .cu files.
      hdrs: headers for users of the library; they include no CUDA header.
      kernel_hdrs: every other header of this project that a source includes
        (nvcc reports none to Bazel, so an unlisted one rebuilds nothing).
      deps: as in cc_library, for linking and for users of the headers.
      visibility: as in cc_library.
    """
    native.genrule(
        name = name + "_nvcc",
        srcs = srcs + hdrs + kernel_hdrs,
        outs = [name + ".pic.o"],
        cmd = " ".join([
            "for src in",
            " ".join(["$(location %s)" % src for src in srcs]),
            "; do echo \"#include \\\"$$src\\\"\"; done > $(@D)/%s.cu;" % name,
            "PATH=$$PATH:/usr/local/cuda/bin nvcc",
            _FLAGS,
            _ARCHITECTURES,
            "-c $(@D)/%s.cu -o $@" % name,
        ]),
        message = "Compiling kernels of " + name,
        target_compatible_with = CUDA_ONLY,
    )
    native.cc_library(
        name = name,
        srcs = [name + ".pic.o"],
        # Its users have its headers from elsewhere: a linker may see them later.
        alwayslink = True,
        # A shared library would not carry the toolkit that it needs.
        linkstatic = True,
        hdrs = hdrs,
        target_compatible_with = CUDA_ONLY,
        visibility = visibility,
        deps = deps + ["//third_party/cuda:cudart"],
    )
