#include "worker/backend/cpu/dnnl_conv2d.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/relu.h"

namespace muster {
namespace {

// Every layout is oneDNN's choice. Direct: oneDNN has Winograd for 3x3 windows
// only, with points whose rounding errors are several times the direct sum's.
constexpr dnnl::algorithm kAlgorithm = dnnl::algorithm::convolution_direct;

struct Geometry {
  explicit Geometry(const WindowDesc& w)
      : strides{w.stride_h, w.stride_w},
        pads_begin{w.pad_top, w.pad_left},
        pads_end{w.pad_bottom, w.pad_right} {}
  const dnnl::memory::dims strides, pads_begin, pads_end;
};

// Empty without a bias, as oneDNN wants it.
dnnl::memory::desc BiasDesc(const Conv2dDesc& desc) {
  return desc.has_bias ? AnyLayout(desc.bias_shape()) : dnnl::memory::desc();
}

// With groups, the dimensions that oneDNN wants.
dnnl::memory::desc WeightsDesc(const Conv2dDesc& desc) {
  if (desc.groups == 1) return AnyLayout(desc.weights_shape());
  return AnyLayout({desc.groups, desc.dst_channels / desc.groups,
                    desc.src_channels / desc.groups, desc.window.kernel_h,
                    desc.window.kernel_w});
}

// With one channel oneDNN's own choice for the gradient of the weights is a
// src padded to 8 channels, and 8 times the work.
dnnl::memory::desc SrcDesc(const Conv2dDesc& desc) {
  if (desc.src_channels != 1) return AnyLayout(desc.src_shape());
  return dnnl::memory::desc({desc.batch, 1, desc.height, desc.width},
                            dnnl::memory::data_type::f32,
                            dnnl::memory::format_tag::nchw);
}

dnnl::convolution_forward::primitive_desc Forward(const CpuContext& context,
                                                  const Conv2dDesc& desc) {
  const Geometry geometry(desc.window);
  return {{dnnl::prop_kind::forward_training, kAlgorithm, SrcDesc(desc),
           WeightsDesc(desc), BiasDesc(desc), AnyLayout(desc.dst_shape()),
           geometry.strides, geometry.pads_begin, geometry.pads_end},
          ScratchAttr(),
          context.engine};
}

}  // namespace

int64_t DnnlDstBlock(const CpuContext& context, const Conv2dDesc& desc) {
  const auto dst = LayoutOf(Forward(context, desc).dst_desc());
  return dst.ok() ? ChannelBlock(*dst) : 0;
}

CpuPrimitive MakeDnnlConv2dForward(const CpuContext& context,
                                   const Conv2dDesc& desc) {
  const auto conv = Forward(context, desc);
  ASSIGN_OR_RETURN(
      auto primitive,
      DnnlPrimitive::Create(
          context,
          {dnnl::convolution_forward(conv),
           {{DNNL_ARG_SRC, Operand::kSrc, conv.src_desc()},
            {DNNL_ARG_WEIGHTS, Operand::kWeights, conv.weights_desc()},
            {DNNL_ARG_BIAS, Operand::kBias, conv.bias_desc()},
            {DNNL_ARG_DST, Operand::kDst, conv.dst_desc()},
            {DNNL_ARG_SCRATCHPAD, Operand::kScratch, conv.scratchpad_desc()}},
           /*in_place=*/false,
           "conv2d forward"}));
  if (!desc.relu) return primitive;
  return WithRelu(context.threads, std::move(primitive));
}

CpuPrimitive MakeDnnlConv2dBackwardData(const CpuContext& context,
                                        const Conv2dDesc& desc) {
  const Geometry geometry(desc.window);
  const dnnl::convolution_backward_data::primitive_desc conv(
      {kAlgorithm, AnyLayout(desc.src_shape()), WeightsDesc(desc),
       AnyLayout(desc.dst_shape()), geometry.strides, geometry.pads_begin,
       geometry.pads_end},
      ScratchAttr(), context.engine, Forward(context, desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::convolution_backward_data(conv),
       {{DNNL_ARG_DIFF_DST, Operand::kDiffDst, conv.diff_dst_desc()},
        {DNNL_ARG_WEIGHTS, Operand::kWeights, conv.weights_desc()},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, conv.diff_src_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, conv.scratchpad_desc()}},
       /*in_place=*/false,
       "conv2d backward data"});
}

CpuPrimitive MakeDnnlConv2dBackwardWeights(const CpuContext& context,
                                           const Conv2dDesc& desc) {
  const Geometry geometry(desc.window);
  const dnnl::convolution_backward_weights::primitive_desc conv(
      {kAlgorithm, SrcDesc(desc), WeightsDesc(desc), BiasDesc(desc),
       AnyLayout(desc.dst_shape()), geometry.strides, geometry.pads_begin,
       geometry.pads_end},
      ScratchAttr(), context.engine, Forward(context, desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::convolution_backward_weights(conv),
       {{DNNL_ARG_SRC, Operand::kSrc, conv.src_desc()},
        {DNNL_ARG_DIFF_DST, Operand::kDiffDst, conv.diff_dst_desc()},
        {DNNL_ARG_DIFF_WEIGHTS, Operand::kDiffWeights,
         conv.diff_weights_desc()},
        {DNNL_ARG_DIFF_BIAS, Operand::kDiffBias, conv.diff_bias_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, conv.scratchpad_desc()}},
       /*in_place=*/false,
       "conv2d backward weights"});
}

}  // namespace muster
