#ifndef WORKER_MODEL_CHANNEL_PARTS_H_
#define WORKER_MODEL_CHANNEL_PARTS_H_

#include <cstdint>

#include "common/tensor/shape.h"
#include "worker/layer/layer_operation.h"

namespace muster {

// The fields of an operation whose channels can be divided: a dense layer, or a
// convolution without groups. All null for others.
struct ChannelFields {
  int64_t* inputs = nullptr;
  int64_t* outputs = nullptr;
  bool* has_bias = nullptr;
  bool* relu = nullptr;
};
ChannelFields ChannelFieldsOf(OperationDesc* desc);

// `count` of `parts` equal ranges of the channels, dimension 1 of `whole`.
// REQUIRES: the parts divide them.
Shape ShapeOfChannels(const Shape& whole, int count, int parts);

// Makes `desc`, which reads a value of shape `src`, that of `count` of `parts`
// equal ranges of its channels. False, and nothing changes, unless it computes
// each channel by itself: batch norm, activations, dropout, pools, and reshapes
// that keep the ranges apart.
bool NarrowToChannels(const Shape& src, int count, int parts,
                      OperationDesc* desc);

}  // namespace muster

#endif  // WORKER_MODEL_CHANNEL_PARTS_H_
