// Registers "cpu".
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/backend.h"
#include "worker/backend/check_layout.h"
#include "worker/backend/cpu/cpu_primitives.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_status.h"
#include "worker/backend/virtual_devices.h"

namespace muster {
namespace {

// oneDNN with kernels of our own. float32.
class CpuBackend : public Backend {
 public:
  explicit CpuBackend(CpuContext context) : context_(std::move(context)) {}

  absl::string_view name() const override { return "cpu"; }
  DataType dtype() const override { return FLOAT32; }

  Created CreateReorder(const MemoryLayout& from,
                        const MemoryLayout& to) override {
    RETURN_IF_ERROR(CheckReorder(from, to, dtype()));
    return Make("create a reorder",
                [&] { return MakeCpuReorder(context_, from, to); });
  }
  Created CreateConv2dForward(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create conv2d forward",
                [&] { return MakeCpuConv2dForward(context_, desc); });
  }
  Created CreateConv2dBackwardData(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create conv2d backward data",
                [&] { return MakeCpuConv2dBackwardData(context_, desc); });
  }
  Created CreateConv2dBackwardWeights(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create conv2d backward weights",
                [&] { return MakeCpuConv2dBackwardWeights(context_, desc); });
  }
  Created CreateDenseForward(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create dense forward",
                [&] { return MakeCpuDenseForward(context_, desc); });
  }
  Created CreateDenseBackwardData(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create dense backward data",
                [&] { return MakeCpuDenseBackwardData(context_, desc); });
  }
  Created CreateDenseBackwardWeights(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return Make("create dense backward weights",
                [&] { return MakeCpuDenseBackwardWeights(context_, desc); });
  }
  Created CreateActivationForward(const ActivationDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(CheckLayout("activation", src, dtype(), src.shape));
    return Make("create activation forward",
                [&] { return MakeCpuActivationForward(context_, desc, src); });
  }
  Created CreateActivationBackward(const ActivationDesc& desc,
                                   const MemoryLayout& dst) override {
    RETURN_IF_ERROR(CheckLayout("activation", dst, dtype(), dst.shape));
    return Make("create activation backward",
                [&] { return MakeCpuActivationBackward(context_, desc, dst); });
  }
  Created CreatePoolForward(const PoolDesc& desc,
                            const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return Make("create pool forward",
                [&] { return MakeCpuPoolForward(context_, desc, src); });
  }
  Created CreatePoolBackward(const PoolDesc& desc,
                             const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return Make("create pool backward",
                [&] { return MakeCpuPoolBackward(context_, desc, src); });
  }
  Created CreateDropoutForward(const DropoutDesc& desc,
                               const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeCpuDropoutForward(context_, desc);
  }
  Created CreateDropoutBackward(const DropoutDesc& desc,
                                const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeCpuDropoutBackward(context_, desc);
  }
  Created CreateBatchNormForward(const BatchNormDesc& desc,
                                 const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return Make("create batch norm forward",
                [&] { return MakeCpuBatchNormForward(context_, desc, src); });
  }
  Created CreateBatchNormBackward(const BatchNormDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return Make("create batch norm backward",
                [&] { return MakeCpuBatchNormBackward(context_, desc, src); });
  }
  Created CreateAdd(const AddDesc& desc,
                    absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCpuAdd(context_, desc, srcs[0]);
  }
  Created CreateConcatForward(const ConcatDesc& desc,
                              absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCpuConcatForward(desc, srcs);
  }
  Created CreateConcatBackward(const ConcatDesc& desc,
                               absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCpuConcatBackward(desc, srcs);
  }
  Created CreateSoftmaxCrossEntropy(
      const SoftmaxCrossEntropyDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCpuSoftmaxCrossEntropy(desc);
  }
  Created CreateL2Penalty(const L2PenaltyDesc& desc,
                          const MemoryLayout& weights) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("L2 penalty", weights, dtype(), desc.shape));
    return MakeCpuL2Penalty(desc, weights);
  }

 private:
  // Calls oneDNN with our number of threads: some of its primitives divide
  // their work when they are made.
  template <typename MakePrimitive>
  Created Make(absl::string_view what, MakePrimitive make) const {
    UseComputeThreads(context_.threads);
    return CatchDnnl(what, make);
  }

  const CpuContext context_;
};

absl::StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions& options) {
  using Result = absl::StatusOr<std::unique_ptr<Backend>>;
  return CatchDnnl("create backend 'cpu'", [&]() -> Result {
    return std::make_unique<CpuBackend>(
        CpuContext{dnnl::engine(dnnl::engine::kind::cpu, /*index=*/0),
                   options.compute_threads});
  });
}

absl::string_view InstructionSet() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 VNNI";
    default:
      return "AVX-512";
  }
}

std::vector<Device> Devices(const GpuOptions& /*gpu*/) {
  const dnnl::version_t* version = dnnl::version();
  return VirtualDevices(
      "cpu", absl::StrCat("oneDNN ", version->major, ".", version->minor, ".",
                          version->patch, ", ", InstructionSet(), ", ",
                          std::thread::hardware_concurrency(), " cores"));
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register("cpu", {&Create, &Devices});

}  // namespace
}  // namespace muster
