#include "worker/layer/activation_layer.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "tanh", {"tanh(x)", {}, &ActivationLayer::Create<ActivationKind::kTanh>});

}  // namespace
}  // namespace muster
