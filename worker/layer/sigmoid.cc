#include "worker/layer/activation_layer.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "sigmoid", {"1 / (1 + exp(-x))",
                {},
                &ActivationLayer::Create<ActivationKind::kSigmoid>});

}  // namespace
}  // namespace muster
