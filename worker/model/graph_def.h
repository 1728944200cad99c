#ifndef WORKER_MODEL_GRAPH_DEF_H_
#define WORKER_MODEL_GRAPH_DEF_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "proto/summary.pb.h"
#include "worker/model/model_graph.h"

namespace muster {

// The model as TensorBoard draws it: for each layer, and for the input, a node
// with its name and type, the nodes that it reads, the shape of what it makes
// of `batch_size` rows, and the device that computes it. Of several devices
// each has its own nodes, "tower_0/conv1" and so on.
//   devices: "cpu:0", one a tower
GraphDef MakeGraphDef(const ModelGraph& model, int64_t batch_size,
                      absl::Span<const std::string> devices);

}  // namespace muster

#endif  // WORKER_MODEL_GRAPH_DEF_H_
