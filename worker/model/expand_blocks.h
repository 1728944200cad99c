#ifndef WORKER_MODEL_EXPAND_BLOCKS_H_
#define WORKER_MODEL_EXPAND_BLOCKS_H_

#include "absl/status/status.h"
#include "proto/training.pb.h"

namespace muster {

// Puts the layers of `model`'s blocks in the place of each use, and takes the
// blocks away. A layer `conv` of the block that "stage1" uses becomes
// "stage1/conv"; "_norm" becomes "stage1_norm", and a layer without a name
// "stage1". Whoever reads "stage1" reads the block's last layer.
// Without blocks the model stays as it is.
// Errors, all InvalidArgument, naming the block and the layer: names missing
// or double, a block named like a type of layer, an unknown parameter or input
// (with the nearest name), a parameter without a value, a use with `share`,
// blocks too deep in each other or with too many layers in all. The model is
// unchanged then.
absl::Status ExpandBlocks(ModelSpec* model);

}  // namespace muster

#endif  // WORKER_MODEL_EXPAND_BLOCKS_H_
