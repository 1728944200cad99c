#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_conv2d.h"
#include "worker/backend/cpu/one_channel_conv2d.h"
#include "worker/backend/cpu/one_channel_kernel.h"
#include "worker/backend/cpu/winograd_conv2d.h"

namespace muster {
namespace {

// oneDNN's block if the Winograd kernel is to be used, else 0.
int64_t WinogradBlock(const CpuContext& context, const Conv2dDesc& desc) {
  return IsForWinograd(desc) ? DnnlDstBlock(context, desc) : 0;
}

// With wider blocks oneDNN has AVX-512, and then is the faster one.
bool UsesOneChannel(const CpuContext& context, const Conv2dDesc& desc) {
  return IsForOneChannel(desc) &&
         DnnlDstBlock(context, desc) == kOneChannelBlock;
}

CpuPrimitive MakeForward(const CpuContext& context, const Conv2dDesc& desc) {
  const int64_t block = WinogradBlock(context, desc);
  if (block != 0) return MakeWinogradForward(context, desc, block);
  return MakeDnnlConv2dForward(context, desc);
}

CpuPrimitive MakeBackwardData(const CpuContext& context,
                              const Conv2dDesc& desc) {
  const int64_t block = WinogradBlock(context, desc);
  if (block != 0) return MakeWinogradBackwardData(context, desc, block);
  return MakeDnnlConv2dBackwardData(context, desc);
}

CpuPrimitive MakeBackwardWeights(const CpuContext& context,
                                 const Conv2dDesc& desc) {
  const int64_t block = WinogradBlock(context, desc);
  if (block != 0) return MakeWinogradBackwardWeights(context, desc, block);
  if (UsesOneChannel(context, desc)) {
    return MakeOneChannelBackwardWeights(context, desc);
  }
  return MakeDnnlConv2dBackwardWeights(context, desc);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<Conv2dDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<Conv2dDesc>(Pass::kBackwardData,
                                        &MakeBackwardData) &&
    CpuPrimitives::Register<Conv2dDesc>(Pass::kBackwardWeights,
                                        &MakeBackwardWeights);

}  // namespace
}  // namespace muster
