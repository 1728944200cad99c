"""A unit is a class or a family of functions: NAME.h and NAME.cc, or one of them.

    unit("step_budget", deps = ["//common/cluster:task_id"])
    unit_test("step_budget_test")

What nearly all of them include is among their deps without being named.
"""

_ABSL = "//third_party:absl"
_MACROS = "//common/base:status_macros"

# Small, and below nearly everything: for all but common/base itself.
_BASE = [
    "//common/base:clock",
    "//common/base:reporter",
]

# Likewise, for all but common/.
_ABOVE_COMMON = [
    "//common/base:escape",
    "//common/base:nearest_name",
    "//common/cluster:task_id",
    "//common/config:attributes",
    "//common/rpc:error_reason",
    "//common/rpc:protocol",
    "//common/tensor:aligned_buffer",
    "//common/tensor:dtype",
    "//common/tensor:shape",
    "//proto:cluster",
    "//proto:data_schema",
    "//proto:tensor",
    "//proto:training",
    "//third_party:protobuf",
]

# Likewise, for ps_server/ and its tests.
_PS_SERVER = [
    "//common/rpc:call_table",
    "//proto:coordination_service",
    "//proto:parameter_service",
]

_TEST_DEPS = [
    "//tests/testing:reported_lines",
    "//tests/testing:status_matchers",
    "//third_party:gtest_main",
]

_RACE_DEPS = select({
    "//third_party:finding_races": ["//tests/testing:annotated_mutex"],
    "//conditions:default": [],
})

def _common_deps(name):
    folder = native.package_name()
    if folder == "common/base":
        return [_ABSL] if name == "status_macros" else [_ABSL, _MACROS]
    deps = [_ABSL, _MACROS] + _BASE
    if folder.startswith("common/"):
        return deps
    deps = deps + _ABOVE_COMMON
    return deps + _PS_SERVER if "ps_server" in folder else deps

def unit(name, srcs = None, hdrs = None, deps = [], **kwargs):
    """A library of NAME.cc and NAME.h, as far as they exist.

    In tests/ it is for tests only.

    Args:
      name: the stem of its files.
      srcs: its sources, where they have other names or are several.
      hdrs: its headers, likewise.
      deps: what it includes besides what every unit has.
      **kwargs: passed on to cc_library.
    """
    if srcs == None:
        srcs = native.glob([name + ".cc"])
    if hdrs == None:
        hdrs = native.glob([name + ".h"])
    if not srcs and not hdrs:
        fail("unit('{}'): there is neither {}.cc nor {}.h".format(name, name, name))
    native.cc_library(
        name = name,
        testonly = native.package_name().startswith("tests/"),
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + _common_deps(name),
        **kwargs
    )

def unit_test(name, of = "", srcs = None, size = "small", deps = [], **kwargs):
    """The test NAME.cc of the unit of the same name in the mirrored folder.

    Args:
      name: the unit's name, and "_test".
      of: another unit of that folder, or None.
      srcs: its sources, if there are others than NAME.cc.
      size: as cc_test's.
      deps: what it includes besides the unit, GoogleTest, the status matchers
        and what every unit has.
      **kwargs: passed on to cc_test.
    """
    common_deps = _common_deps(name)
    tested = []
    if of != None:
        folder = native.package_name()[len("tests/"):]
        unit_tested = "//{}:{}".format(folder, of or name[:-len("_test")])
        if unit_tested not in common_deps:
            tested = [unit_tested]
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = deps + tested + common_deps + _TEST_DEPS + _RACE_DEPS,
        **kwargs
    )
