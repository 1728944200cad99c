"""Fuzz targets: README.md says how they are run."""

def fuzz_target(name, max_bytes, malloc_mb = 16, seconds = 10, deps = []):
    """The test NAME.cc, which defines TryInput (fuzz.h).

    With --config=clang it is a program of libFuzzer, which makes inputs from
    those in corpus/NAME; else it tries those alone.

    Args:
      name: the stem of its file, and its folder in corpus/.
      max_bytes: of an input that is made. A kept one may have more.
      malloc_mb: the most MiB that the code may ask for at once.
      seconds: of a run of libFuzzer; fewer where all is soon seen.
      deps: what it includes besides fuzz.h and Abseil.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = [name + ".cc"],
        args = [
            "-max_len=%d" % max_bytes,
            "-malloc_limit_mb=%d" % malloc_mb,
            "-max_total_time=%d" % seconds,
            "tests/fuzz/corpus/" + name,
        ],
        data = native.glob(["corpus/%s/*" % name]),
        linkopts = select({
            "//third_party:precompiling": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps + [":fuzz", "//third_party:absl"] + select({
            "//third_party:precompiling": [":libfuzzer_arguments"],
            "//conditions:default": [":replay"],
        }),
    )
