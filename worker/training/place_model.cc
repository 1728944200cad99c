#include "worker/training/place_model.h"

#include "common/base/status_macros.h"
#include "common/cluster/placement_strategy.h"
#include "worker/client/model_fingerprint.h"
#include "worker/hook/tensor_log.h"

namespace muster {

absl::StatusOr<PlacedModel> PlaceModel(const TrainingSpec& training,
                                       absl::Span<const TensorDef> tensors,
                                       int num_ps) {
  PlacedModel placed;
  placed.tensors.assign(tensors.begin(), tensors.end());
  ASSIGN_OR_RETURN(placed.placement,
                   PlaceTensors(tensors, num_ps, training.placement()));
  RETURN_IF_ERROR(CheckTensorLog(training.log_tensors(), tensors));
  placed.definition.optimizer = training.optimizer();
  placed.definition.replication = training.replication();
  placed.definition.allow_non_finite = training.non_finite().allow();
  placed.definition.fingerprint =
      ModelFingerprint(tensors, training.optimizer());
  return placed;
}

}  // namespace muster
