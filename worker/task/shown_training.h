#ifndef WORKER_TASK_SHOWN_TRAINING_H_
#define WORKER_TASK_SHOWN_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/hparams.pb.h"
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
  // As result.json has them.
  std::string replication;
  int64_t accumulate_batches = 1;
  int num_ps = 0;
  int num_workers = 0;
  // What --set was given: "path=value".
  std::vector<std::string> overrides;
};

// The settings that tell runs apart, by their names in result.json, and each
// field of the overrides by its path. REQUIRES: the training is checked.
HparamsSessionStart HparamsOf(const ShownTraining& shown);

// Fills in the model's graph, if it has layers, HparamsOf, and how examples to
// look at are read: the first summary.images rows of the training set, as
// input.map varies them in the epoch of the step. Errors: those of
// ModelGraph::Create.
absl::Status AddShownParts(const ShownTraining& shown, SummaryParts* parts);

}  // namespace muster

#endif  // WORKER_TASK_SHOWN_TRAINING_H_
