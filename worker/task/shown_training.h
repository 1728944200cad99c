#ifndef WORKER_TASK_SHOWN_TRAINING_H_
#define WORKER_TASK_SHOWN_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/training.pb.h"
#include "worker/hook/summary_hooks.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// The parts of a training that TensorBoard shows besides its numbers.
struct ShownTraining {
  // Both outlive what reads the examples.
  const TrainingSpec* training = nullptr;
  // Null: a stream, of which no examples are shown.
  const DataSet* training_set = nullptr;
  // Rows of one tower.
  int64_t batch_size = 0;
  // The towers', "cpu:0".
  std::vector<std::string> devices;
  // Global steps in one pass over the training set.
  int64_t epoch_updates = 1;
};

// Fills in the model's graph, and how examples to look at are read: the first
// summary.images rows of the training set, as input.map varies them in the
// epoch of the step. Errors: those of ModelGraph::Create.
absl::Status AddShownParts(const ShownTraining& shown, SummaryParts* parts);

}  // namespace muster

#endif  // WORKER_TASK_SHOWN_TRAINING_H_
