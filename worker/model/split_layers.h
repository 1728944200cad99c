#ifndef WORKER_MODEL_SPLIT_LAYERS_H_
#define WORKER_MODEL_SPLIT_LAYERS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/training.pb.h"
#include "worker/model/model_graph.h"
#include "worker/model/program.h"

namespace muster {

// Errors: InvalidArgument naming the layer, if its `split` is not possible:
// fewer than two parts, another number of devices than parts, a layer that is
// no dense or convolution (or one in groups), output channels that the parts do
// not divide, parameters that another layer has, too.
absl::Status CheckSplit(const LayerSpec& layer, const ModelGraph& graph);

// Divides each dense layer or convolution that has parts by its output
// channels: part k of p makes the k-th of p equal ranges of them, from all of
// the source, and a Concat makes the whole. `parts_of` gives the parts of a
// layer, 1 if it has none. REQUIRES: CheckSplit; every ReLU is merged.
void SplitLayers(absl::FunctionRef<int(absl::string_view layer)> parts_of,
                 Program* program);

}  // namespace muster

#endif  // WORKER_MODEL_SPLIT_LAYERS_H_
