#include "worker/backend/cpu/cpu_primitives.h"
#include "worker/backend/cpu/dnnl_layout.h"

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
                                                    const DenseDesc& desc,
                                                    dnnl::primitive_attr attr) {
  return {{dnnl::prop_kind::forward_training, AnyLayout(desc.src_shape()),
           WeightsDesc(desc), BiasDesc(desc), AnyLayout(desc.dst_shape())},
          attr,
          context.engine};
}

}  // namespace

CpuPrimitive MakeCpuDenseForward(const CpuContext& context,
                                 const DenseDesc& desc) {
  dnnl::primitive_attr attr = ScratchAttr();
  if (desc.relu) {
    dnnl::post_ops post_ops;
    post_ops.append_eltwise(/*scale=*/1, dnnl::algorithm::eltwise_relu,
                            /*alpha=*/0, /*beta=*/0);
    attr.set_post_ops(post_ops);
  }
  const auto dense = Forward(context, desc, attr);
  return DnnlPrimitive::Create(
      context,
      {dnnl::inner_product_forward(dense),
       {{DNNL_ARG_SRC, Operand::kSrc, dense.src_desc()},
        {DNNL_ARG_WEIGHTS, Operand::kWeights, dense.weights_desc()},
        {DNNL_ARG_BIAS, Operand::kBias, dense.bias_desc()},
        {DNNL_ARG_DST, Operand::kDst, dense.dst_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, dense.scratchpad_desc()}},
       /*in_place=*/false,
       "dense forward"});
}

CpuPrimitive MakeCpuDenseBackwardData(const CpuContext& context,
                                      const DenseDesc& desc) {
  const dnnl::inner_product_backward_data::primitive_desc dense(
      {AnyLayout(desc.src_shape()), WeightsDesc(desc),
       AnyLayout(desc.dst_shape())},
      ScratchAttr(), context.engine, Forward(context, desc, ScratchAttr()));
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

CpuPrimitive MakeCpuDenseBackwardWeights(const CpuContext& context,
                                         const DenseDesc& desc) {
  const dnnl::inner_product_backward_weights::primitive_desc dense(
      {AnyLayout(desc.src_shape()), WeightsDesc(desc), BiasDesc(desc),
       AnyLayout(desc.dst_shape())},
      ScratchAttr(), context.engine, Forward(context, desc, ScratchAttr()));
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

}  // namespace muster
