#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/check_labels.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/target_loss_kernel.h"

namespace muster {
namespace {

// The losses of rows, and then what they count as correct.
MemoryLayout ScratchLayout(const TargetLossDesc& desc) {
  static_assert(sizeof(double) == sizeof(int64_t), "");
  return MemoryLayout::RowMajor(FLOAT64, {2, desc.batch});
}

class CudaTargetLoss : public CudaPrimitive {
 public:
  CudaTargetLoss(CudaDevice* device, const TargetLossDesc& desc)
      : CudaPrimitive(device, absl::StrCat("target loss of ",
                                           desc.src_shape().ToString())),
        desc_(desc) {
    const MemoryLayout src = MemoryLayout::RowMajor(FLOAT32, desc.src_shape());
    Take(Operand::kSrc, src);
    Take(Operand::kLabels, src);
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.counts_correct()) {
      Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    }
    if (desc.phase == Phase::kTraining) Take(Operand::kDiffSrc, src);
    Take(Operand::kScratch, ScratchLayout(desc));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(CheckRows(desc_.batch, operands.rows));
    TargetLossMemory memory;
    memory.src = operands.As<const float>(Operand::kSrc);
    memory.targets = operands.As<const float>(Operand::kLabels);
    memory.weights = operands.As<const float>(Operand::kRowWeights);
    memory.loss = operands.As<double>(Operand::kLoss);
    memory.correct = operands.As<int64_t>(Operand::kCorrect);
    memory.diff_src = operands.As<float>(Operand::kDiffSrc);
    memory.row_losses = operands.As<double>(Operand::kScratch);
    memory.row_hits = operands.As<int64_t>(Operand::kScratch) + desc_.batch;
    memory.is_cross_entropy = desc_.counts_correct();
    return Check(TargetLoss(kernels(), desc_.batch, desc_.outputs,
                            operands.rows, memory));
  }

  const TargetLossDesc desc_;
};

MadePrimitive MakePrimitive(CudaDevice* device, const TargetLossDesc& desc) {
  return std::make_unique<CudaTargetLoss>(device, desc);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<TargetLossDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
