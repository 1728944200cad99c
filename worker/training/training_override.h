#ifndef WORKER_TRAINING_TRAINING_OVERRIDE_H_
#define WORKER_TRAINING_TRAINING_OVERRIDE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/training.pb.h"

namespace muster {

// Changes one field of `spec`: the --set flag's "path=value". A path is
//   - a scalar field: stop.steps=100, input.dir=/data, seed=7;
//   - a list, as a whole: of numbers 1,28,28, of texts a,b, of messages their
//     text in braces:
//     placement.pin={pattern: "conv.*" ps_task: 1}, {pattern: ".*" ps_task: 0};
//   - a part that is chosen by name: optimizer=sgd, placement=greedy,
//     input=synthetic, optimizer.schedule=cosine, replication=async.
//     Another optimizer starts with its own default attributes;
//   - a message as a whole, its text in braces: placement={strategy: "greedy"},
//     placement.partition.auto={};
//   - an optimizer's attribute, checked by the optimizer's own table:
//     optimizer.adam.learning_rate=3e-4, or optimizer.learning_rate=3e-4;
//   - a layer's attribute, type or freeze: model.conv1.filters=16,
//     model.act.type=tanh, model.conv1.freeze=true;
//   - a parameter of the use of a block, model.stage1.filters=16, or a layer
//     that it stands for: model.stage1/conv.filters=16.
// The registries of layers and update rules must be linked in.
// Errors: InvalidArgument or NotFound, "--set path=value: ..." with the name
// that is unknown and its nearest neighbour, or with what a value must be.
absl::Status ApplyOverride(absl::string_view assignment, TrainingSpec* spec);

}  // namespace muster

#endif  // WORKER_TRAINING_TRAINING_OVERRIDE_H_
