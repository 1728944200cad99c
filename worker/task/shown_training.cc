#include "worker/task/shown_training.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
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

absl::Status AddShownParts(const ShownTraining& shown, SummaryParts* parts) {
  ASSIGN_OR_RETURN(const ModelGraph model,
                   ModelGraph::Create(shown.training->model()));
  parts->graph = MakeGraphDef(model, shown.batch_size, shown.devices);
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
