#ifndef WORKER_MODEL_SPLIT_LAYERS_H_
#define WORKER_MODEL_SPLIT_LAYERS_H_

#include <string>
#include <vector>

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
// channels: each part makes a range of them, from all of the source. Batch
// norms and activations that alone read what it makes are of the same parts, on
// their devices; then a Concat makes the whole. `runs_of` gives the parts of a
// layer, each as a number of equal ranges ({3, 1} are three quarters and one);
// empty if it has none. REQUIRES: CheckSplit; every ReLU that can be is merged.
void SplitLayers(
    absl::FunctionRef<std::vector<int>(absl::string_view layer)> runs_of,
    Program* program);

}  // namespace muster

#endif  // WORKER_MODEL_SPLIT_LAYERS_H_
