#include "worker/layer/layer.h"
#include "worker/layer/pool_layer.h"
#include "worker/layer/window_attributes.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "average_pool", {"mean of each window, without its padding",
                     WindowAttributes(WindowUse::kPooling),
                     &PoolLayer::Create<PoolKind::kAverage>});

}  // namespace
}  // namespace muster
