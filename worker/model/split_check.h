#ifndef WORKER_MODEL_SPLIT_CHECK_H_
#define WORKER_MODEL_SPLIT_CHECK_H_

#include "absl/status/status.h"
#include "proto/training.pb.h"
#include "worker/model/model_graph.h"

namespace muster {

// Errors: InvalidArgument naming the first layer of `spec`, which has no blocks
// and is that of `graph`, whose `split` is not possible: fewer than two parts,
// another number of devices than parts, a layer that is no dense or convolution
// (or one in groups), channels that the parts do not divide, parameters that
// another layer has, too; by INPUTS a source that is not divided alike by its
// OUTPUTS, or that something else reads, or something between the two that
// does not compute each channel by itself.
absl::Status CheckSplits(const ModelSpec& spec, const ModelGraph& graph);

}  // namespace muster

#endif  // WORKER_MODEL_SPLIT_CHECK_H_
