#include "worker/task/shown_training.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule.h"
#include "common/summary/hparams.h"
#include "worker/model/graph_def.h"
#include "worker/model/model_graph.h"

namespace muster {
namespace {

// The first rows as they are in `epoch`, at most `count`: [rows, shape...].
absl::StatusOr<std::vector<float>> ReadFirstRows(const DataSet& data_set,
                                                 int64_t count, int64_t epoch) {
  const int64_t rows = std::min(count, data_set.num_examples());
  const int64_t elements = data_set.example_shape().num_elements();
  std::vector<float> values(rows * elements);
  for (int64_t i = 0; i < rows; ++i) {
    RETURN_IF_ERROR(
        data_set.ReadInEpoch(i, epoch, {values.data() + i * elements}));
  }
  return values;
}

}  // namespace

HparamsSessionStart HparamsOf(const ShownTraining& shown) {
  const TrainingSpec& training = *shown.training;
  HparamsSessionStart start;
  auto& hparams = *start.mutable_hparams();
  for (const std::string& assignment : shown.overrides) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(assignment, absl::MaxSplits('=', 1));
    hparams[parts.first] = HparamOf(parts.second);
  }
  hparams["model"].set_string_value(training.model().name());
  hparams["replication"].set_string_value(shown.replication);
  hparams["optimizer"].set_string_value(training.optimizer().name());
  const auto rate = LearningRateOf(training.optimizer());
  if (rate.ok()) hparams["learning_rate"] = HparamOf(rate->base());
  hparams["seed"] = HparamOf(static_cast<double>(training.seed()));
  hparams["batch_size"] = HparamOf(static_cast<double>(shown.batch_size));
  hparams["accumulate_batches"] =
      HparamOf(static_cast<double>(shown.accumulate_batches));
  hparams["cluster.ps"] = HparamOf(shown.num_ps);
  hparams["cluster.worker"] = HparamOf(shown.num_workers);
  return start;
}

absl::Status AddShownParts(const ShownTraining& shown, SummaryParts* parts) {
  if (!shown.training->model().layer().empty()) {
    ASSIGN_OR_RETURN(const ModelGraph model,
                     ModelGraph::Create(shown.training->model()));
    parts->graph = MakeGraphDef(model, shown.batch_size, shown.devices);
  }
  parts->hparams = HparamsOf(shown);
  // A stream is read once, in order.
  if (shown.training_set == nullptr) return absl::OkStatus();
  parts->example_shape = shown.training_set->example_shape();
  parts->read_examples =
      [set = shown.training_set, count = shown.training->summary().images(),
       epoch_updates = shown.epoch_updates](int64_t global_step) {
        // The step has the number of the update that it made.
        const int64_t epoch = std::max<int64_t>(global_step - 1, 0) /
                              std::max<int64_t>(epoch_updates, 1);
        return ReadFirstRows(*set, count, epoch);
      };
  return absl::OkStatus();
}

}  // namespace muster
