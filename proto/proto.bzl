"""protoc and grpc_cpp_plugin as Bazel rules."""

def muster_proto_library(name, deps = [], grpc = False, visibility = None):
    """Makes the C++ library //proto:NAME from NAME.proto.

    Include it as "proto/NAME.pb.h", with grpc also "proto/NAME.grpc.pb.h".

    Args:
      name: the .proto file's stem.
      deps: the libraries of the .proto files that it imports.
      grpc: whether to generate the services too.
      visibility: as in cc_library.
    """
    src = name + ".proto"
    srcs = [name + ".pb.cc"]
    hdrs = [name + ".pb.h"]
    command = "protoc -I. --cpp_out=$(GENDIR) "
    if grpc:
        srcs.append(name + ".grpc.pb.cc")
        hdrs.append(name + ".grpc.pb.h")
        command += "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) "
    native.genrule(
        name = name + "_protoc",
        srcs = [src] + [dep + "_src" for dep in deps],
        outs = srcs + hdrs,
        cmd = command + "$(location %s)" % src,
        message = "Generating C++ from %s" % src,
    )
    native.filegroup(
        name = name + "_src",
        srcs = [src] + [dep + "_src" for dep in deps],
        visibility = visibility,
    )
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + (["//third_party:grpc"] if grpc else ["//third_party:protobuf"]),
        visibility = visibility,
    )
