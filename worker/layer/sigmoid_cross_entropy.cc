#include "worker/layer/target_loss_layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "sigmoid_cross_entropy",
    {"loss: mean of -z log(s) - (1 - z) log(1 - s) with s = sigmoid(x); labels "
     "are targets z, one an output, or classes",
     {},
     &TargetLossLayer<TargetLossKind::kSigmoidCrossEntropy>::Create,
     /*min_inputs=*/1,
     /*max_inputs=*/1,
     LossType{/*reads_targets=*/true, Prediction::kSigmoid, {"accuracy"}}});

}  // namespace
}  // namespace muster
