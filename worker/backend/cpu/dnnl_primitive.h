#ifndef WORKER_BACKEND_CPU_DNNL_PRIMITIVE_H_
#define WORKER_BACKEND_CPU_DNNL_PRIMITIVE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "worker/backend/primitive.h"

namespace muster {

// The engine and settings that a cpu backend's primitives share. Immutable.
struct CpuContext {
  dnnl::engine engine;
  int threads = 1;
};

// A primitive that is one primitive of oneDNN. Its memory objects are made
// once; Execute only points them elsewhere when the operands moved.
class DnnlPrimitive : public Primitive {
 public:
  // One argument: DNNL_ARG_*, whose memory it is, and how it lies there.
  struct Argument {
    int dnnl_arg;
    Operand operand;
    dnnl::memory::desc desc;
  };
  struct Config {
    dnnl::primitive primitive;
    // An argument of an empty desc is left out; two may be one operand.
    std::vector<Argument> arguments;
    bool in_place = false;
    const char* name = "";
  };

  // Errors: those of LayoutOf. May throw dnnl::error: call within CatchDnnl.
  static absl::StatusOr<std::unique_ptr<Primitive>> Create(
      const CpuContext& context, const Config& config);

  // oneDNN's name of the implementation that it chose.
  std::string description() const override;

 private:
  struct Bound {
    Operand operand;
    dnnl::memory memory;
    void* at;  // where `memory` points
  };

  DnnlPrimitive(const CpuContext& context, const Config& config)
      : name_(config.name),
        threads_(context.threads),
        primitive_(config.primitive),
        stream_(context.engine) {}

  absl::Status Run(const Operands& operands) override;

  const char* const name_;
  const int threads_;
  const dnnl::primitive primitive_;
  const dnnl::stream stream_;
  std::vector<Bound> bound_;
  // For the C interface, which needs no map built for each call.
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Attributes that every primitive has: its scratch memory is an operand.
dnnl::primitive_attr ScratchAttr();

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_DNNL_PRIMITIVE_H_
