#include "worker/layer/activation_layer.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "relu", {"max(0, x)", {}, &ActivationLayer::Create<ActivationKind::kRelu>});

}  // namespace
}  // namespace muster
