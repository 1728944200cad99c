#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/channel_sum_kernel.h"
#include "worker/backend/cuda/conv2d_algorithm.h"
#include "worker/backend/cuda/conv2d_problem.h"
#include "worker/backend/cuda/conv2d_source.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/product_operand.h"
#include "worker/backend/cuda/scratch_parts.h"

namespace muster {
namespace {

using DataPerf = cudnnConvolutionBwdDataAlgoPerf_t;
using FilterPerf = cudnnConvolutionBwdFilterAlgoPerf_t;

constexpr float kOne = 1;
constexpr float kZero = 0;

absl::StatusOr<DataPerf> ChooseForData(const Conv2dProblem& problem) {
  const CudnnFunctions& cudnn = problem.gpu().cudnn;
  return ChooseAlgorithm<DataPerf>(
      problem,
      [&](int count, int* found, DataPerf* perfs) {
        return cudnn.GetConvolutionBackwardDataAlgorithm_v7(
            problem.handle(), problem.weights(), problem.dst(),
            problem.convolution(), problem.src(), count, found, perfs);
      },
      [&](cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
        return cudnn.GetConvolutionBackwardDataWorkspaceSize(
            problem.handle(), problem.weights(), problem.dst(),
            problem.convolution(), problem.src(), algorithm, bytes);
      });
}

absl::StatusOr<FilterPerf> ChooseForWeights(const Conv2dProblem& problem) {
  const CudnnFunctions& cudnn = problem.gpu().cudnn;
  return ChooseAlgorithm<FilterPerf>(
      problem,
      [&](int count, int* found, FilterPerf* perfs) {
        return cudnn.GetConvolutionBackwardFilterAlgorithm_v7(
            problem.handle(), problem.src(), problem.dst(),
            problem.convolution(), problem.weights(), count, found, perfs);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
        return cudnn.GetConvolutionBackwardFilterWorkspaceSize(
            problem.handle(), problem.src(), problem.dst(),
            problem.convolution(), problem.weights(), algorithm, bytes);
      });
}

class CudaConv2dBackwardData : public CudaPrimitive {
 public:
  CudaConv2dBackwardData(CudaDevice* device, const Conv2dDesc& desc,
                         std::unique_ptr<Conv2dProblem> problem,
                         const DataPerf& perf)
      : CudaPrimitive(device, problem->what(),
                      absl::StrCat("cuDNN data algorithm ", perf.algo, ", ",
                                   device->precision().name())),
        problem_(std::move(problem)),
        perf_(perf),
        diff_dst_(device->precision(), desc.dst_shape().num_elements(),
                  &scratch_),
        weights_(device->precision(), desc.weights_shape().num_elements(),
                 &scratch_),
        diff_src_(desc, *problem_, &scratch_),
        workspace_(scratch_.Add(perf.memory)) {
    Take(Operand::kDiffDst, NhwcLayout(desc.dst_shape()));
    Take(Operand::kWeights, KrscLayout(desc.weights_shape()));
    Take(Operand::kDiffSrc, NhwcLayout(desc.src_shape()));
    if (!scratch_.empty()) Take(Operand::kScratch, scratch_.layout());
  }

 private:
  absl::Status Run(const Operands& operands) override {
    void* const scratch = operands.Get(Operand::kScratch);
    float* const diff_dst = operands.As<float>(Operand::kDiffDst);
    float* const weights = operands.As<float>(Operand::kWeights);
    float* const diff_src = operands.As<float>(Operand::kDiffSrc);
    RETURN_IF_ERROR(Check(diff_dst_.Load(kernels(), diff_dst, scratch)));
    RETURN_IF_ERROR(Check(weights_.Load(kernels(), weights, scratch)));
    RETURN_IF_ERROR(Check(gpu().cudnn.ConvolutionBackwardData(
        device().cudnn(), &kOne, problem_->weights(),
        weights_.At(weights, scratch), problem_->dst(),
        diff_dst_.At(diff_dst, scratch), problem_->convolution(), perf_.algo,
        ScratchParts::At<>(scratch, workspace_), perf_.memory, &kZero,
        problem_->src(), diff_src_.At(diff_src, scratch))));
    return Check(diff_src_.Store(kernels(), diff_src, scratch));
  }

  const std::unique_ptr<Conv2dProblem> problem_;
  const DataPerf perf_;
  ScratchParts scratch_;
  const ProductOperand diff_dst_;
  const ProductOperand weights_;
  const Conv2dSource diff_src_;
  const int64_t workspace_;
};

// Channels are last in memory: the gradient of the bias is a sum of rows.
ChannelShape BiasShape(const Conv2dDesc& desc) {
  return {desc.dst_shape().num_elements() / desc.dst_channels,
          desc.dst_channels, 1};
}

class CudaConv2dBackwardWeights : public CudaPrimitive {
 public:
  CudaConv2dBackwardWeights(CudaDevice* device, const Conv2dDesc& desc,
                            std::unique_ptr<Conv2dProblem> problem,
                            const FilterPerf& perf)
      : CudaPrimitive(device, problem->what(),
                      absl::StrCat("cuDNN filter algorithm ", perf.algo, ", ",
                                   device->precision().name())),
        problem_(std::move(problem)),
        perf_(perf),
        bias_shape_(BiasShape(desc)),
        src_(desc, *problem_, &scratch_),
        diff_dst_(device->precision(), desc.dst_shape().num_elements(),
                  &scratch_),
        diff_weights_(device->precision(), desc.weights_shape().num_elements(),
                      &scratch_),
        workspace_(scratch_.Add(perf.memory)) {
    Take(Operand::kSrc, NhwcLayout(desc.src_shape()));
    Take(Operand::kDiffDst, NhwcLayout(desc.dst_shape()));
    Take(Operand::kDiffWeights, KrscLayout(desc.weights_shape()));
    if (desc.has_bias) {
      Take(Operand::kDiffBias,
           MemoryLayout::RowMajor(FLOAT32, desc.bias_shape()));
      sums_ = scratch_.Add(ChannelSumScratch(bias_shape_) * sizeof(float));
    }
    if (!scratch_.empty()) Take(Operand::kScratch, scratch_.layout());
  }

 private:
  absl::Status Run(const Operands& operands) override {
    void* const scratch = operands.Get(Operand::kScratch);
    float* const src = operands.As<float>(Operand::kSrc);
    float* const diff_dst = operands.As<float>(Operand::kDiffDst);
    float* const diff_weights = operands.As<float>(Operand::kDiffWeights);
    RETURN_IF_ERROR(Check(src_.Load(kernels(), src, scratch)));
    RETURN_IF_ERROR(Check(diff_dst_.Load(kernels(), diff_dst, scratch)));
    RETURN_IF_ERROR(Check(gpu().cudnn.ConvolutionBackwardFilter(
        device().cudnn(), &kOne, problem_->src(), src_.At(src, scratch),
        problem_->dst(), diff_dst_.At(diff_dst, scratch),
        problem_->convolution(), perf_.algo,
        ScratchParts::At<>(scratch, workspace_), perf_.memory, &kZero,
        problem_->weights(), diff_weights_.At(diff_weights, scratch))));
    RETURN_IF_ERROR(
        Check(diff_weights_.Store(kernels(), diff_weights, scratch)));
    if (!takes(Operand::kDiffBias)) return absl::OkStatus();
    return Check(SumChannels(kernels(), bias_shape_, diff_dst,
                             operands.As<float>(Operand::kDiffBias),
                             ScratchParts::At<float>(scratch, sums_)));
  }

  const std::unique_ptr<Conv2dProblem> problem_;
  const FilterPerf perf_;
  const ChannelShape bias_shape_;
  ScratchParts scratch_;
  const Conv2dSource src_;
  const ProductOperand diff_dst_;
  const ProductOperand diff_weights_;
  const int64_t workspace_;
  int64_t sums_ = 0;
};

MadePrimitive MakeBackwardData(CudaDevice* device, const Conv2dDesc& desc) {
  ASSIGN_OR_RETURN(std::unique_ptr<Conv2dProblem> problem,
                   Conv2dProblem::Create(
                       device, desc, DescribeConv2d("backward data", desc)));
  ASSIGN_OR_RETURN(const DataPerf perf, ChooseForData(*problem));
  return std::make_unique<CudaConv2dBackwardData>(device, desc,
                                                  std::move(problem), perf);
}

MadePrimitive MakeBackwardWeights(CudaDevice* device, const Conv2dDesc& desc) {
  ASSIGN_OR_RETURN(std::unique_ptr<Conv2dProblem> problem,
                   Conv2dProblem::Create(
                       device, desc, DescribeConv2d("backward weights", desc)));
  ASSIGN_OR_RETURN(const FilterPerf perf, ChooseForWeights(*problem));
  return std::make_unique<CudaConv2dBackwardWeights>(device, desc,
                                                     std::move(problem), perf);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<Conv2dDesc>(Pass::kBackwardData,
                                         &MakeBackwardData) &&
    CudaPrimitives::Register<Conv2dDesc>(Pass::kBackwardWeights,
                                         &MakeBackwardWeights);

}  // namespace
}  // namespace muster
