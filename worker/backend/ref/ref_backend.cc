// Registers "ref" and "ref_float64".
#include <type_traits>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/backend/backend.h"
#include "worker/backend/check_layout.h"
#include "worker/backend/ref/ref_primitives.h"
#include "worker/backend/virtual_devices.h"

namespace muster {
namespace {

// The oracle: every operation as plain loops in T. Every layout is row-major.
template <typename T>
class RefBackend : public Backend {
 public:
  absl::string_view name() const override {
    return std::is_same<T, double>::value ? "ref_float64" : "ref";
  }
  DataType dtype() const override { return DataTypeOf<T>::kValue; }

  Created CreateReorder(const MemoryLayout& from,
                        const MemoryLayout& to) override {
    RETURN_IF_ERROR(CheckReorder(from, to, dtype()));
    return MakeRefReorder<T>(from.shape);
  }
  Created CreateConv2dForward(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefConv2dForward<T>(desc);
  }
  Created CreateConv2dBackwardData(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefConv2dBackwardData<T>(desc);
  }
  Created CreateConv2dBackwardWeights(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefConv2dBackwardWeights<T>(desc);
  }
  Created CreateDenseForward(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefDenseForward<T>(desc);
  }
  Created CreateDenseBackwardData(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefDenseBackwardData<T>(desc);
  }
  Created CreateDenseBackwardWeights(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefDenseBackwardWeights<T>(desc);
  }
  Created CreateActivationForward(const ActivationDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(CheckLayout("activation", src, dtype(), src.shape));
    return MakeRefActivationForward<T>(desc, src.shape);
  }
  Created CreateActivationBackward(const ActivationDesc& desc,
                                   const MemoryLayout& dst) override {
    RETURN_IF_ERROR(CheckLayout("activation", dst, dtype(), dst.shape));
    return MakeRefActivationBackward<T>(desc, dst.shape);
  }
  Created CreatePoolForward(const PoolDesc& desc,
                            const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return MakeRefPoolForward<T>(desc);
  }
  Created CreatePoolBackward(const PoolDesc& desc,
                             const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return MakeRefPoolBackward<T>(desc);
  }
  Created CreateDropoutForward(const DropoutDesc& desc,
                               const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeRefDropoutForward<T>(desc);
  }
  Created CreateDropoutBackward(const DropoutDesc& desc,
                                const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeRefDropoutBackward<T>(desc);
  }
  Created CreateBatchNormForward(const BatchNormDesc& desc,
                                 const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return MakeRefBatchNormForward<T>(desc);
  }
  Created CreateBatchNormBackward(const BatchNormDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return MakeRefBatchNormBackward<T>(desc);
  }
  Created CreateAdd(const AddDesc& desc,
                    absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeRefAdd<T>(desc);
  }
  Created CreateConcatForward(const ConcatDesc& desc,
                              absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeRefConcatForward<T>(desc);
  }
  Created CreateConcatBackward(const ConcatDesc& desc,
                               absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeRefConcatBackward<T>(desc);
  }
  Created CreateSoftmaxCrossEntropy(
      const SoftmaxCrossEntropyDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeRefSoftmaxCrossEntropy<T>(desc);
  }
  Created CreateL2Penalty(const L2PenaltyDesc& desc,
                          const MemoryLayout& weights) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("L2 penalty", weights, dtype(), desc.shape));
    return MakeRefL2Penalty<T>(desc);
  }
};

// Never uses more than one thread, whatever `compute_threads` says: the order
// of its sums is part of the oracle.
template <typename T>
absl::StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions&) {
  return std::make_unique<RefBackend<T>>();
}

std::vector<Device> DevicesOf(absl::string_view backend) {
  return VirtualDevices(backend, "plain loops, one thread");
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register(
        "ref",
        {&Create<float>, [](const GpuOptions&) { return DevicesOf("ref"); }}) &&
    BackendRegistry::Register("ref_float64",
                              {&Create<double>, [](const GpuOptions&) {
                                 return DevicesOf("ref_float64");
                               }});

}  // namespace
}  // namespace muster
