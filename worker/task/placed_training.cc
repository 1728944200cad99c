#include "worker/task/placed_training.h"

#include <string>
#include <vector>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement_table.h"
#include "worker/task/report_lines.h"
#include "worker/training/optimizers_of.h"
#include "worker/training/place_model.h"
#include "worker/training/scale_optimizer.h"
#include "worker/training/table_defs.h"

namespace muster {

absl::StatusOr<std::unique_ptr<PlacedTraining>> PlacedTraining::Create(
    WorkerJob job, const Trained& trained) {
  auto placed = absl::WrapUnique(new PlacedTraining(std::move(job)));
  RETURN_IF_ERROR(placed->FitOptimizer(trained.shape, trained.num_examples));
  RETURN_IF_ERROR(placed->Place(trained.tensors, trained.tables));
  return placed;
}

absl::Status PlacedTraining::FitOptimizer(const BatchPlan& shape,
                                          int64_t num_examples) {
  TrainingSpec* const training = &job_.options.training;
  const Reporter reporter =
      job_.is_chief() ? job_.options.reporter : Reporter();
  epoch_ = {num_examples, UpdateRows(training->replication(), shape)};
  // An update has the rows of the workers that are there.
  if (job_.options.cluster.takes_any_worker() &&
      training->replication().has_sync()) {
    epoch_.update_rows = 0;
  }
  RETURN_IF_ERROR(CheckUpdateRows(shape, epoch_.update_rows, num_examples));
  RETURN_IF_ERROR(CheckEpochs(training->stop(), num_examples));
  for (OptimizerSpec* const optimizer : OptimizersOf(training)) {
    RETURN_IF_ERROR(FitScheduleToTraining(training->stop(), epoch_, optimizer));
  }
  ASSIGN_OR_RETURN(const std::string scaling, ScaleOptimizer(shape, training));
  if (!scaling.empty()) reporter.Info(scaling);
  reporter.Info(
      DescribeStop(training->stop(), epoch_, job_.options.stop_source));
  ASSIGN_OR_RETURN(update_rule_, CreateUpdateRule(training->optimizer()));
  return absl::OkStatus();
}

absl::Status PlacedTraining::Place(absl::Span<const TensorDef> tensors,
                                   absl::Span<const ProgramTable> tables) {
  const auto num_ps = static_cast<int>(job_.ps_addresses.size());
  // As it was given: all_reduce has become sync by now.
  RETURN_IF_ERROR(CheckSuitsTables(job_.given_training, tables));
  ASSIGN_OR_RETURN(const std::vector<TableDef> defs,
                   MakeTableDefs(training(), tables));
  ASSIGN_OR_RETURN(model_, PlaceModel(training(), tensors, num_ps, defs));
  if (!job_.is_chief()) return absl::OkStatus();
  ReportLines(PlacementTable(model_.tensors, model_.placement, num_ps),
              job_.options.reporter);
  return absl::OkStatus();
}

}  // namespace muster
