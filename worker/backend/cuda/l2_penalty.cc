#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/l2_penalty_kernel.h"

namespace muster {
namespace {

class CudaL2Penalty : public CudaPrimitive {
 public:
  CudaL2Penalty(CudaDevice* device, const L2PenaltyDesc& desc,
                const MemoryLayout& weights)
      : CudaPrimitive(device,
                      absl::StrCat("L2 penalty of ", weights.ToString())),
        scale_(desc.scale),
        elements_(weights.shape.num_elements()) {
    Take(Operand::kWeights, weights);
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.phase == Phase::kTraining) Take(Operand::kDiffWeights, weights);
    Take(Operand::kScratch,
         MemoryLayout::RowMajor(FLOAT64, {L2PenaltyScratch(elements_)}));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    float* const diff_weights = takes(Operand::kDiffWeights)
                                    ? operands.As<float>(Operand::kDiffWeights)
                                    : nullptr;
    return Check(AddL2Penalty(
        kernels(), scale_, operands.As<const float>(Operand::kWeights),
        elements_, operands.As<double>(Operand::kLoss), diff_weights,
        operands.As<double>(Operand::kScratch)));
  }

  const double scale_;
  const int64_t elements_;
};

MadePrimitive MakePrimitive(CudaDevice* device, const L2PenaltyDesc& desc,
                            const MemoryLayout& weights) {
  return std::make_unique<CudaL2Penalty>(device, desc, weights);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<L2PenaltyDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
