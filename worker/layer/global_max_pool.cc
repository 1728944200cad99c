#include "worker/layer/layer.h"
#include "worker/layer/pool_layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "global_max_pool", {"largest value of each channel: [C, H, W] -> [C]",
                        {},
                        &GlobalPoolLayer::Create<PoolKind::kMax>});

}  // namespace
}  // namespace muster
