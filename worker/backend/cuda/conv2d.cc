#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/conv2d_algorithm.h"
#include "worker/backend/cuda/conv2d_problem.h"
#include "worker/backend/cuda/conv2d_source.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/elementwise_kernel.h"
#include "worker/backend/cuda/product_operand.h"
#include "worker/backend/cuda/scratch_parts.h"

namespace muster {
namespace {

using Perf = cudnnConvolutionFwdAlgoPerf_t;

constexpr float kOne = 1;
constexpr float kZero = 0;

// The algorithm that cuDNN ends with a bias and nothing else, too.
constexpr cudnnConvolutionFwdAlgo_t kFusing =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

absl::StatusOr<Perf> Choose(const Conv2dProblem& problem) {
  const CudnnFunctions& cudnn = problem.gpu().cudnn;
  const auto list = [&](int count, int* found, Perf* perfs) {
    const cudnnStatus_t status = cudnn.GetConvolutionForwardAlgorithm_v7(
        problem.handle(), problem.src(), problem.weights(),
        problem.convolution(), problem.dst(), count, found, perfs);
    if (status == CUDNN_STATUS_SUCCESS && problem.desc().has_bias) {
      std::stable_partition(perfs, perfs + *found, [](const Perf& perf) {
        return perf.algo == kFusing;
      });
    }
    return status;
  };
  const auto workspace_size = [&](cudnnConvolutionFwdAlgo_t algorithm,
                                  size_t* bytes) {
    return cudnn.GetConvolutionForwardWorkspaceSize(
        problem.handle(), problem.src(), problem.weights(),
        problem.convolution(), problem.dst(), algorithm, bytes);
  };
  return ChooseAlgorithm<Perf>(problem, list, workspace_size);
}

const char* NameOf(cudnnConvolutionFwdAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
      return "implicit_gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
      return "implicit_precomp_gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
      return "gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_DIRECT:
      return "direct";
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
      return "fft";
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
      return "winograd";
    default:
      return "another algorithm";
  }
}

// The descriptors of what ends a convolution with a bias.
struct BiasEnd {
  explicit BiasEnd(const GpuFunctions& gpu)
      : bias(gpu.cudnn.DestroyTensorDescriptor),
        activation(gpu.cudnn.DestroyActivationDescriptor) {}

  CudnnTensor bias;
  CudnnActivation activation;
};

// A bias alone keeps NaN. A ReLU of cuDNN's does not: 9.19 takes
// CUDNN_PROPAGATE_NAN and makes 0 of NaN all the same (seen on an H200), so
// that one is never asked for.
absl::StatusOr<BiasEnd> CreateBiasEnd(const Conv2dProblem& problem) {
  constexpr double kUnusedCoefficient = 0;
  const CudnnFunctions& cudnn = problem.gpu().cudnn;
  BiasEnd end(problem.gpu());
  RETURN_IF_ERROR(problem.Describe(&end.bias));
  RETURN_IF_ERROR(
      problem.Check(cudnn.CreateActivationDescriptor(end.activation.put())));
  RETURN_IF_ERROR(problem.Check(cudnn.SetActivationDescriptor(
      end.activation.get(), CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN,
      kUnusedCoefficient)));
  return end;
}

// Whether cuDNN adds the bias in the convolution's call. kUntried: it is asked
// at the first call. kRefused: a pass of our own adds it, and does a ReLU.
enum class Fusion { kNone, kUntried, kTaken, kRefused };

Fusion FusionOf(const Conv2dDesc& desc, const Perf& perf) {
  if (!desc.has_bias) return Fusion::kNone;
  const bool can_be = perf.algo == kFusing && !desc.relu;
  return can_be ? Fusion::kUntried : Fusion::kRefused;
}

// For descriptions: the rest of one.
const char* NameOf(Fusion fusion) {
  switch (fusion) {
    case Fusion::kNone:
      return "";
    case Fusion::kUntried:
      return ", bias fused if cuDNN can";
    case Fusion::kTaken:
      return ", bias fused";
    case Fusion::kRefused:
      return ", bias by itself";
  }
  return "";
}

class CudaConv2dForward : public CudaPrimitive {
 public:
  CudaConv2dForward(CudaDevice* device, const Conv2dDesc& desc,
                    std::unique_ptr<Conv2dProblem> problem, BiasEnd end,
                    const Perf& perf)
      : CudaPrimitive(device, problem->what(),
                      absl::StrCat("cuDNN ", NameOf(perf.algo), ", ",
                                   device->precision().name())),
        problem_(std::move(problem)),
        end_(std::move(end)),
        algorithm_(perf.algo),
        workspace_bytes_(perf.memory),
        src_(desc, *problem_, &scratch_),
        weights_(device->precision(), desc.weights_shape().num_elements(),
                 &scratch_),
        bias_(device->precision(), desc.has_bias ? desc.dst_channels : 0,
              &scratch_),
        dst_(device->precision(), desc.dst_shape().num_elements(), &scratch_),
        workspace_(scratch_.Add(workspace_bytes_)),
        fusion_(FusionOf(desc, perf)) {
    Take(Operand::kSrc, NhwcLayout(desc.src_shape()));
    Take(Operand::kWeights, KrscLayout(desc.weights_shape()));
    if (desc.has_bias) {
      Take(Operand::kBias, MemoryLayout::RowMajor(FLOAT32, desc.bias_shape()));
    }
    Take(Operand::kDst, NhwcLayout(desc.dst_shape()));
    if (!scratch_.empty()) Take(Operand::kScratch, scratch_.layout());
  }

  std::string description() const override {
    return absl::StrCat(CudaPrimitive::description(), NameOf(fusion_));
  }

 private:
  // The memory that cuDNN reads and writes.
  struct Memory {
    const void* src;
    const void* weights;
    const void* bias;
    void* dst;
    void* workspace;
  };

  absl::Status Run(const Operands& operands) override {
    float* const dst = operands.As<float>(Operand::kDst);
    void* const scratch = operands.Get(Operand::kScratch);
    RETURN_IF_ERROR(Load(operands));
    const Memory memory = MemoryOf(operands);
    if (is_asked()) {
      const cudnnStatus_t status = Fused(memory);
      if (!IsRefused(status)) {
        RETURN_IF_ERROR(Check(status));
        fusion_ = Fusion::kTaken;
        return Check(dst_.Store(kernels(), dst, scratch));
      }
      fusion_ = Fusion::kRefused;
    }
    RETURN_IF_ERROR(Check(Unfused(memory)));
    RETURN_IF_ERROR(Check(dst_.Store(kernels(), dst, scratch)));
    return Check(End(operands, dst));
  }

  // Bias and ReLU of a convolution that cuDNN has not ended, in one pass.
  absl::Status End(const Operands& operands, float* dst) const {
    const int64_t elements = layout(Operand::kDst).shape.num_elements();
    const int64_t channels = problem_->desc().dst_channels;
    const bool relu = problem_->desc().relu;
    if (takes(Operand::kBias)) {
      return AddBias(kernels(), operands.As<const float>(Operand::kBias),
                     channels, relu, dst, elements / channels);
    }
    if (!relu) return absl::OkStatus();
    return ActivationForward(kernels(), {ActivationKind::kRelu}, dst, dst,
                             elements);
  }

  // Whether cuDNN is to add the bias.
  bool is_asked() const {
    return fusion_ == Fusion::kUntried || fusion_ == Fusion::kTaken;
  }

  // cuDNN says only when it is asked to compute that it has no such kernel for
  // these shapes, in some cases as a bad parameter: that is forgiven at the
  // first call, since what it has taken once is good.
  bool IsRefused(cudnnStatus_t status) const {
    const bool is_bad_parameter =
        CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM;
    return IsNotSupported(status) ||
           (is_bad_parameter && fusion_ == Fusion::kUntried);
  }

  absl::Status Load(const Operands& operands) const {
    void* const scratch = operands.Get(Operand::kScratch);
    RETURN_IF_ERROR(Check(src_.Load(
        kernels(), operands.As<const float>(Operand::kSrc), scratch)));
    RETURN_IF_ERROR(Check(weights_.Load(
        kernels(), operands.As<const float>(Operand::kWeights), scratch)));
    if (!is_asked()) return absl::OkStatus();
    return Check(bias_.Load(kernels(), operands.As<const float>(Operand::kBias),
                            scratch));
  }

  Memory MemoryOf(const Operands& operands) const {
    void* const scratch = operands.Get(Operand::kScratch);
    return {src_.At(operands.As<float>(Operand::kSrc), scratch),
            weights_.At(operands.Get(Operand::kWeights), scratch),
            bias_.At(operands.Get(Operand::kBias), scratch),
            dst_.At(operands.Get(Operand::kDst), scratch),
            ScratchParts::At<>(scratch, workspace_)};
  }

  cudnnStatus_t Fused(const Memory& memory) const {
    // z, which 0 leaves out, must be something that fits dst.
    return gpu().cudnn.ConvolutionBiasActivationForward(
        device().cudnn(), &kOne, problem_->src(), memory.src,
        problem_->weights(), memory.weights, problem_->convolution(),
        algorithm_, memory.workspace, workspace_bytes_, &kZero, problem_->dst(),
        memory.dst, end_.bias.get(), memory.bias, end_.activation.get(),
        problem_->dst(), memory.dst);
  }

  // The convolution alone.
  cudnnStatus_t Unfused(const Memory& memory) const {
    return gpu().cudnn.ConvolutionForward(
        device().cudnn(), &kOne, problem_->src(), memory.src,
        problem_->weights(), memory.weights, problem_->convolution(),
        algorithm_, memory.workspace, workspace_bytes_, &kZero, problem_->dst(),
        memory.dst);
  }

  const std::unique_ptr<Conv2dProblem> problem_;
  const BiasEnd end_;
  const cudnnConvolutionFwdAlgo_t algorithm_;
  const size_t workspace_bytes_;
  ScratchParts scratch_;
  const Conv2dSource src_;
  const ProductOperand weights_;
  const ProductOperand bias_;
  const ProductOperand dst_;
  const int64_t workspace_;
  Fusion fusion_;
};

MadePrimitive MakeForward(CudaDevice* device, const Conv2dDesc& desc) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Conv2dProblem> problem,
      Conv2dProblem::Create(device, desc, DescribeConv2d("forward", desc)));
  ASSIGN_OR_RETURN(BiasEnd end, CreateBiasEnd(*problem));
  ASSIGN_OR_RETURN(const Perf perf, Choose(*problem));
  return std::make_unique<CudaConv2dForward>(device, desc, std::move(problem),
                                             std::move(end), perf);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<Conv2dDesc>(Pass::kForward, &MakeForward);

}  // namespace
}  // namespace muster
