#ifndef WORKER_MODEL_PROGRAM_H_
#define WORKER_MODEL_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/backend/operation.h"
#include "worker/layer/layer_operation.h"
#include "worker/model/model_graph.h"

namespace muster {

// One operation of a whole model. Values and parameters are indices.
struct ProgramOp {
  // The layer's name, for messages and as the dropout's stream.
  std::string name;
  OperationDesc desc;
  std::vector<int> srcs;
  // The loss has none: -1.
  int dst = -1;
  // Weights, bias; for BatchNormStep also the moving mean and variance.
  std::vector<int> parameters;
  // The number of the device that computes it.
  int device = 0;
  // It reads `num_parts` of `parts` equal ranges of dimension `part_dim` of its
  // parameters, from the `part`-th on (SplitLayers). Those without such a
  // dimension, as a bias, are whole.
  int part = 0;
  int num_parts = 1;
  int parts = 1;
  int part_dim = 0;
  // The layer whose part's device computes it; "": its own.
  std::string part_of;
};

// A model as a list of operations on values: no layers any more, and no memory
// yet. Every value is made once, by an operation before its readers.
struct Program {
  Phase phase = Phase::kTraining;
  // Each value's shape, batch included; [N, C, H, W] or [N, I]. Value 0 is the
  // model's input.
  std::vector<Shape> values;
  // The last one is the loss.
  std::vector<ProgramOp> ops;
};

// Lowers each layer for `batch_size` rows and sets the phase; a batch norm
// whose averages are frozen is always as for inference. For inference dropout
// is left out. Errors: InvalidArgument if the batch size is not positive or
// makes a value too large for memory to address.
absl::StatusOr<Program> LowerModel(const ModelGraph& graph, int64_t batch_size,
                                   Phase phase);

// Lets the loss weigh each row (SoftmaxCrossEntropyDesc::weighted).
void WeighRows(Program* program);

// Merges a ReLU into the operation next to it where nobody else reads between
// them: into the 2x2 max pool with stride 2 after it (one pass over memory
// instead of three), else into the convolution or dense before it.
void FuseActivations(Program* program);

}  // namespace muster

#endif  // WORKER_MODEL_PROGRAM_H_
