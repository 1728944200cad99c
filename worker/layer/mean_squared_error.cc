#include "worker/layer/target_loss_layer.h"

namespace muster {
namespace {

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "mean_squared_error",
    {"loss: mean of (x - z)^2; labels are numbers z, one an output",
     {},
     &TargetLossLayer<TargetLossKind::kSquaredError>::Create,
     /*min_inputs=*/1,
     /*max_inputs=*/1,
     LossType{/*reads_targets=*/true,
              Prediction::kIdentity,
              {"mean_absolute_error"}}});

}  // namespace
}  // namespace muster
