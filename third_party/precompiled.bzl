"""Precompiled headers: the libraries' headers are parsed once."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    output = ctx.outputs.out
    fragment = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.files.srcs[0].path,
        output_file = output.path,
        quote_include_directories = depset(["."]),
        user_compile_flags = fragment.copts + fragment.cxxopts,
        preprocessor_defines = depset(ctx.attr.defines),
        use_pic = True,
    )
    action = ACTION_NAMES.cpp_compile
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = action,
        variables = variables,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = action,
        ),
        # The later -x wins over the file's ending.
        arguments = ["-x", "c++-header"] + flags + ctx.attr.copts,
        inputs = depset(ctx.files.srcs, transitive = [toolchain.all_files]),
        outputs = [output],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        execution_requirements = {} if ctx.attr.cacheable else {"no-cache": "1"},
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + output.short_path,
    )
    return [
        DefaultInfo(files = depset([output])),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([output] + ctx.files.srcs),
        )),
    ]

# Parses the first of `srcs` into `out` with the flags of every other source.
# What depends on it may be compiled with it (.bazelrc does so): clang's
# -include-pch takes its path; g++ takes NAME.h.gch where -include names NAME.h,
# if its own flags are the same, and the macros that the headers ask for. There
# is no NAME.h, so that otherwise it fails, and is not merely slow.
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "cacheable": attr.bool(
            default = True,
            doc = "Whether another checkout may take it from a cache.",
        ),
        "copts": attr.string_list(
            doc = "Flags that .bazelrc adds for what is compiled with it.",
        ),
        "defines": attr.string_list(
            doc = "What the libraries' own targets define.",
        ),
        "out": attr.output(mandatory = True),
        "srcs": attr.label_list(
            allow_files = [".h"],
            doc = "The header, and those of ours that it includes.",
            mandatory = True,
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
