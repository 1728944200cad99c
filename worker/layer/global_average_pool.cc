#include "worker/layer/layer.h"
#include "worker/layer/pool_layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "global_average_pool", {"mean of each channel: [C, H, W] -> [C]",
                            {},
                            &GlobalPoolLayer::Create<PoolKind::kAverage>});

}  // namespace
}  // namespace muster
