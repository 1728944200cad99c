#include "worker/training/place_model.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement_strategy.h"
#include "worker/client/model_fingerprint.h"
#include "worker/hook/tensor_log.h"

namespace muster {
namespace {

absl::Status CheckNames(absl::Span<const TensorDef> tensors,
                        absl::Span<const TableDef> tables) {
  for (const TableDef& table : tables) {
    for (const TensorDef& tensor : tensors) {
      if (tensor.name() != table.name()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("table '", EscapeForLog(table.name()),
                       "': a tensor has this name, too; give one of them "
                       "another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlacedModel> PlaceModel(const TrainingSpec& training,
                                       absl::Span<const TensorDef> tensors,
                                       int num_ps,
                                       absl::Span<const TableDef> tables) {
  RETURN_IF_ERROR(CheckNames(tensors, tables));
  PlacedModel placed;
  placed.tensors.assign(tensors.begin(), tensors.end());
  placed.tables.assign(tables.begin(), tables.end());
  ASSIGN_OR_RETURN(placed.placement,
                   PlaceTensors(tensors, num_ps, training.placement()));
  RETURN_IF_ERROR(CheckTensorLog(training.log_tensors(), tensors));
  placed.definition.optimizer = training.optimizer();
  placed.definition.replication = training.replication();
  placed.definition.allow_non_finite = training.non_finite().allow();
  placed.definition.fingerprint =
      ModelFingerprint(tensors, training.optimizer(), tables);
  return placed;
}

}  // namespace muster
