#include "worker/layer/layer.h"
#include "worker/layer/pool_layer.h"
#include "worker/layer/window_attributes.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered =
    LayerRegistry::Register("max_pool", {"largest value of each window",
                                         WindowAttributes(WindowUse::kPooling),
                                         &PoolLayer::Create<PoolKind::kMax>});

}  // namespace
}  // namespace muster
