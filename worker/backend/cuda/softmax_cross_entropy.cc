#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/check_labels.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/softmax_cross_entropy_kernel.h"

namespace muster {
namespace {

// The losses of rows, and then what they count as correct.
MemoryLayout ScratchLayout(const SoftmaxCrossEntropyDesc& desc) {
  static_assert(sizeof(double) == sizeof(int64_t), "");
  return MemoryLayout::RowMajor(FLOAT64, {2, desc.batch});
}

class CudaSoftmaxCrossEntropy : public CudaPrimitive {
 public:
  CudaSoftmaxCrossEntropy(CudaDevice* device,
                          const SoftmaxCrossEntropyDesc& desc)
      : CudaPrimitive(device, absl::StrCat("softmax cross-entropy of ",
                                           desc.src_shape().ToString())),
        desc_(desc) {
    const MemoryLayout src = MemoryLayout::RowMajor(FLOAT32, desc.src_shape());
    Take(Operand::kSrc, src);
    Take(Operand::kLabels, MemoryLayout::RowMajor(INT32, {desc.batch}));
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    if (desc.phase == Phase::kTraining) Take(Operand::kDiffSrc, src);
    Take(Operand::kScratch, ScratchLayout(desc));
  }

 private:
  // The labels are in device memory: whoever put them there has checked them.
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(CheckRows(desc_.batch, operands.rows));
    SoftmaxCrossEntropyMemory memory;
    memory.src = operands.As<const float>(Operand::kSrc);
    memory.labels = operands.As<const int32_t>(Operand::kLabels);
    memory.weights = operands.As<const float>(Operand::kRowWeights);
    memory.loss = operands.As<double>(Operand::kLoss);
    memory.correct = operands.As<int64_t>(Operand::kCorrect);
    if (desc_.phase == Phase::kTraining) {
      memory.diff_src = operands.As<float>(Operand::kDiffSrc);
    }
    memory.row_losses = operands.As<double>(Operand::kScratch);
    memory.label_smoothing = static_cast<float>(desc_.label_smoothing);
    memory.row_hits = operands.As<int64_t>(Operand::kScratch) + desc_.batch;
    return Check(SoftmaxCrossEntropy(kernels(), desc_.batch, desc_.classes,
                                     operands.rows, memory));
  }

  const SoftmaxCrossEntropyDesc desc_;
};

MadePrimitive MakePrimitive(CudaDevice* device,
                            const SoftmaxCrossEntropyDesc& desc) {
  return std::make_unique<CudaSoftmaxCrossEntropy>(device, desc);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<SoftmaxCrossEntropyDesc>(Pass::kForward,
                                                      &MakePrimitive);

}  // namespace
}  // namespace muster
