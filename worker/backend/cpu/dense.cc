#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_status.h"
#include "worker/backend/cpu/relu.h"

namespace muster {
namespace {

// Activations are in oneDNN's choice of layout; weights and their gradients are
// canonical, which makes every product an sgemm. With AVX-512 oneDNN would
// choose blocked weights, and to reorder these there and back costs more than
// its faster forward saves: 5.3 of 30.4 ms a step in mnist_cnn's dense1 (Zen 4,
// one thread).
dnnl::memory::desc WeightsDesc(const DenseDesc& desc) {
  return dnnl::memory::desc({desc.dst_features, desc.src_features},
                            dnnl::memory::data_type::f32,
                            dnnl::memory::format_tag::ab);
}

dnnl::memory::desc BiasDesc(const DenseDesc& desc) {
  return desc.has_bias ? AnyLayout(desc.bias_shape()) : dnnl::memory::desc();
}

dnnl::inner_product_forward::primitive_desc Forward(const CpuContext& context,
                                                    const DenseDesc& desc) {
  return {{dnnl::prop_kind::forward_training, AnyLayout(desc.src_shape()),
           WeightsDesc(desc), BiasDesc(desc), AnyLayout(desc.dst_shape())},
          ScratchAttr(),
          context.engine};
}

// Makes the transpose of dst, weights * transpose(src), and turns it round with
// bias and ReLU. oneDNN's sgemm packs its two operands by different loops, and
// in this order the weights, the larger one, get the faster: 8.7 instead
// of 10.8 ms in mnist_cnn's dense1 with AVX-512, 9.0 instead of 9.2 with AVX2
// (Zen 4).
class TransposedDenseForward : public Primitive {
 public:
  TransposedDenseForward(const CpuContext& context, const DenseDesc& desc)
      : threads_(context.threads), desc_(desc) {
    const auto take = [this](Operand operand, const Shape& shape) {
      Take(operand, MemoryLayout::RowMajor(FLOAT32, shape));
    };
    take(Operand::kSrc, desc.src_shape());
    take(Operand::kWeights, desc.weights_shape());
    if (desc.has_bias) take(Operand::kBias, desc.bias_shape());
    take(Operand::kDst, desc.dst_shape());
    take(Operand::kScratch, Shape{desc.dst_features, desc.batch});
  }

  std::string description() const override {
    return "oneDNN sgemm, transposed";
  }

 private:
  // The side of the blocks that are transposed: two of them fit in the L1
  // cache.
  static constexpr int64_t kBlock = 16;

  absl::Status Run(const Operands& operands) override {
    UseComputeThreads(threads_);
    float* const transposed = operands.As<float>(Operand::kScratch);
    RETURN_IF_ERROR(DnnlStatus(
        dnnl_sgemm('N', 'T', desc_.dst_features, desc_.batch,
                   desc_.src_features, /*alpha=*/1,
                   operands.As<const float>(Operand::kWeights),
                   desc_.src_features, operands.As<const float>(Operand::kSrc),
                   desc_.src_features, /*beta=*/0, transposed, desc_.batch),
        "dense forward"));
    const float* const bias =
        desc_.has_bias ? operands.As<const float>(Operand::kBias) : nullptr;
    float* const dst = operands.As<float>(Operand::kDst);
    const int64_t blocks = (desc_.batch + kBlock - 1) / kBlock;
    ParallelFor(threads_, blocks, threads_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        TurnRows(row * kBlock, transposed, bias, dst);
      }
    });
    return absl::OkStatus();
  }

  void TurnRows(int64_t row, const float* transposed, const float* bias,
                float* dst) const {
    for (int64_t column = 0; column < desc_.dst_features; column += kBlock) {
      TurnBlock(row, column, transposed, bias, dst);
    }
  }

  void TurnBlock(int64_t row, int64_t column, const float* transposed,
                 const float* bias, float* dst) const {
    const int64_t row_end = std::min(row + kBlock, desc_.batch);
    const int64_t column_end = std::min(column + kBlock, desc_.dst_features);
    for (int64_t m = row; m < row_end; ++m) {
      for (int64_t o = column; o < column_end; ++o) {
        float value = transposed[o * desc_.batch + m];
        if (bias != nullptr) value += bias[o];
        // Written so that a NaN stays.
        dst[m * desc_.dst_features + o] = desc_.relu && value < 0 ? 0 : value;
      }
    }
  }

  const int threads_;
  const DenseDesc desc_;
};

CpuPrimitive MakeForward(const CpuContext& context, const DenseDesc& desc) {
  if (desc.dst_features > desc.batch) {
    return std::make_unique<TransposedDenseForward>(context, desc);
  }
  const auto dense = Forward(context, desc);
  ASSIGN_OR_RETURN(
      auto primitive,
      DnnlPrimitive::Create(
          context,
          {dnnl::inner_product_forward(dense),
           {{DNNL_ARG_SRC, Operand::kSrc, dense.src_desc()},
            {DNNL_ARG_WEIGHTS, Operand::kWeights, dense.weights_desc()},
            {DNNL_ARG_BIAS, Operand::kBias, dense.bias_desc()},
            {DNNL_ARG_DST, Operand::kDst, dense.dst_desc()},
            {DNNL_ARG_SCRATCHPAD, Operand::kScratch, dense.scratchpad_desc()}},
           /*in_place=*/false,
           "dense forward"}));
  if (!desc.relu) return primitive;
  return WithRelu(context.threads, std::move(primitive));
}

CpuPrimitive MakeBackwardData(const CpuContext& context,
                              const DenseDesc& desc) {
  const dnnl::inner_product_backward_data::primitive_desc dense(
      {AnyLayout(desc.src_shape()), WeightsDesc(desc),
       AnyLayout(desc.dst_shape())},
      ScratchAttr(), context.engine, Forward(context, desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::inner_product_backward_data(dense),
       {{DNNL_ARG_DIFF_DST, Operand::kDiffDst, dense.diff_dst_desc()},
        {DNNL_ARG_WEIGHTS, Operand::kWeights, dense.weights_desc()},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, dense.diff_src_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, dense.scratchpad_desc()}},
       /*in_place=*/false,
       "dense backward data"});
}

CpuPrimitive MakeBackwardWeights(const CpuContext& context,
                                 const DenseDesc& desc) {
  const dnnl::inner_product_backward_weights::primitive_desc dense(
      {AnyLayout(desc.src_shape()), WeightsDesc(desc), BiasDesc(desc),
       AnyLayout(desc.dst_shape())},
      ScratchAttr(), context.engine, Forward(context, desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::inner_product_backward_weights(dense),
       {{DNNL_ARG_SRC, Operand::kSrc, dense.src_desc()},
        {DNNL_ARG_DIFF_DST, Operand::kDiffDst, dense.diff_dst_desc()},
        {DNNL_ARG_DIFF_WEIGHTS, Operand::kDiffWeights,
         dense.diff_weights_desc()},
        {DNNL_ARG_DIFF_BIAS, Operand::kDiffBias, dense.diff_bias_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, dense.scratchpad_desc()}},
       /*in_place=*/false,
       "dense backward weights"});
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<DenseDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<DenseDesc>(Pass::kBackwardData,
                                       &MakeBackwardData) &&
    CpuPrimitives::Register<DenseDesc>(Pass::kBackwardWeights,
                                       &MakeBackwardWeights);

}  // namespace
}  // namespace muster
