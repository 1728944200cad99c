"""A precompiled header: clang parses the libraries' headers once."""

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
    output = ctx.actions.declare_file(ctx.file.hdr.basename + ".pch")
    fragment = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.hdr.path,
        output_file = output.path,
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
        arguments = ["-x", "c++-header"] + flags,
        inputs = depset([ctx.file.hdr], transitive = [toolchain.all_files]),
        outputs = [output],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %{label}",
    )
    return [
        DefaultInfo(files = depset([output])),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([output, ctx.file.hdr]),
        )),
    ]

# Makes HDR.pch with the flags of every other source. Whoever depends on it may
# be compiled with -include-pch and its path (.bazelrc does so).
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "defines": attr.string_list(
            doc = "What the libraries' own targets define.",
        ),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
