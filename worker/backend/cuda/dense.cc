#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/channel_sum_kernel.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/elementwise_kernel.h"
#include "worker/backend/cuda/matrix_product.h"
#include "worker/backend/cuda/product_operand.h"
#include "worker/backend/cuda/scratch_parts.h"

namespace muster {
namespace {

std::string Describe(const char* direction, const DenseDesc& desc) {
  return absl::StrCat("dense ", direction, " of float32 ",
                      desc.src_shape().ToString(), " with weights ",
                      desc.weights_shape().ToString());
}

// Which operands one primitive multiplies, and how they lie: a row-major
// [N, I] is a column-major I x N.
struct Roles {
  Operand a;
  Operand b;
  Operand d;
  MatrixProduct::Options product;
};

Roles ForwardRoles(const DenseDesc& desc) {
  // transpose(dst) = weights * transpose(src), O x N.
  return {Operand::kWeights,
          Operand::kSrc,
          Operand::kDst,
          {desc.dst_features, desc.batch, desc.src_features,
           /*transpose_a=*/true, /*transpose_b=*/false, desc.has_bias}};
}

Roles BackwardDataRoles(const DenseDesc& desc) {
  // transpose(diff_src) = transpose(weights) * transpose(diff_dst), I x N.
  return {Operand::kWeights,
          Operand::kDiffDst,
          Operand::kDiffSrc,
          {desc.src_features, desc.batch, desc.dst_features}};
}

Roles BackwardWeightsRoles(const DenseDesc& desc) {
  // transpose(diff_weights) = transpose(src) * diff_dst, I x O.
  return {Operand::kSrc,
          Operand::kDiffDst,
          Operand::kDiffWeights,
          {desc.src_features, desc.dst_features, desc.batch,
           /*transpose_a=*/false, /*transpose_b=*/true}};
}

Shape ShapeOf(const DenseDesc& desc, Operand operand) {
  switch (operand) {
    case Operand::kSrc:
    case Operand::kDiffSrc:
      return desc.src_shape();
    case Operand::kWeights:
    case Operand::kDiffWeights:
      return desc.weights_shape();
    case Operand::kBias:
    case Operand::kDiffBias:
      return desc.bias_shape();
    default:
      return desc.dst_shape();
  }
}

// One product with its bias and ReLU, or the bias's gradient beside it.
class CudaDense : public CudaPrimitive {
 public:
  CudaDense(CudaDevice* device, const DenseDesc& desc, const Roles& roles,
            const std::string& what, std::unique_ptr<MatrixProduct> product)
      : CudaPrimitive(device, what,
                      absl::StrCat("cuBLASLt, ", device->precision().name())),
        roles_(roles),
        relu_(desc.relu && roles.d == Operand::kDst),
        bias_shape_({desc.batch, desc.dst_features, 1}),
        product_(std::move(product)),
        a_(device->precision(), ShapeOf(desc, roles.a).num_elements(),
           &scratch_),
        b_(device->precision(), ShapeOf(desc, roles.b).num_elements(),
           &scratch_),
        workspace_(scratch_.Add(product_->workspace_bytes())) {
    for (const Operand operand : {roles.a, roles.b, roles.d}) {
      TakeRowMajor(desc, operand);
    }
    if (roles.product.has_bias) TakeRowMajor(desc, Operand::kBias);
    if (roles.d == Operand::kDiffWeights && desc.has_bias) {
      TakeRowMajor(desc, Operand::kDiffBias);
      sums_ = scratch_.Add(ChannelSumScratch(bias_shape_) * sizeof(float));
    }
    if (!scratch_.empty()) Take(Operand::kScratch, scratch_.layout());
  }

 private:
  void TakeRowMajor(const DenseDesc& desc, Operand operand) {
    Take(operand, MemoryLayout::RowMajor(FLOAT32, ShapeOf(desc, operand)));
  }

  absl::Status Run(const Operands& operands) override {
    void* const scratch = operands.Get(Operand::kScratch);
    float* const a = operands.As<float>(roles_.a);
    float* const b = operands.As<float>(roles_.b);
    RETURN_IF_ERROR(Check(a_.Load(kernels(), a, scratch)));
    RETURN_IF_ERROR(Check(b_.Load(kernels(), b, scratch)));
    RETURN_IF_ERROR(product_->Run(a_.At(a, scratch), b_.At(b, scratch),
                                  operands.As<const float>(Operand::kBias),
                                  operands.As<float>(roles_.d),
                                  ScratchParts::At<>(scratch, workspace_)));
    if (relu_) {
      float* const dst = operands.As<float>(Operand::kDst);
      return Check(
          ActivationForward(kernels(), {ActivationKind::kRelu}, dst, dst,
                            layout(Operand::kDst).shape.num_elements()));
    }
    if (!takes(Operand::kDiffBias)) return absl::OkStatus();
    return Check(SumChannels(kernels(), bias_shape_,
                             operands.As<const float>(Operand::kDiffDst),
                             operands.As<float>(Operand::kDiffBias),
                             ScratchParts::At<float>(scratch, sums_)));
  }

  const Roles roles_;
  const bool relu_;
  const ChannelShape bias_shape_;
  const std::unique_ptr<MatrixProduct> product_;
  ScratchParts scratch_;
  const ProductOperand a_;
  const ProductOperand b_;
  const int64_t workspace_;
  int64_t sums_ = 0;
};

MadePrimitive Make(CudaDevice* device, const DenseDesc& desc,
                   const Roles& roles, const char* direction) {
  const std::string what = Describe(direction, desc);
  ASSIGN_OR_RETURN(std::unique_ptr<MatrixProduct> product,
                   MatrixProduct::Create(device, roles.product, what));
  return std::make_unique<CudaDense>(device, desc, roles, what,
                                     std::move(product));
}

MadePrimitive MakeForward(CudaDevice* device, const DenseDesc& desc) {
  return Make(device, desc, ForwardRoles(desc), "forward");
}

MadePrimitive MakeBackwardData(CudaDevice* device, const DenseDesc& desc) {
  return Make(device, desc, BackwardDataRoles(desc), "backward data");
}

MadePrimitive MakeBackwardWeights(CudaDevice* device, const DenseDesc& desc) {
  return Make(device, desc, BackwardWeightsRoles(desc), "backward weights");
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<DenseDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<DenseDesc>(Pass::kBackwardData,
                                        &MakeBackwardData) &&
    CudaPrimitives::Register<DenseDesc>(Pass::kBackwardWeights,
                                        &MakeBackwardWeights);

}  // namespace
}  // namespace muster
