#ifndef WORKER_MODEL_SPLIT_LAYERS_H_
#define WORKER_MODEL_SPLIT_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "proto/training.pb.h"
#include "worker/model/program.h"

namespace muster {

// How a layer is divided: by its outputs into parts that are numbers of equal
// ranges of its channels ({3, 1} are three quarters and one); by its inputs
// into the parts of what it reads.
struct LayerSplit {
  SplitBy by = OUTPUTS;
  // By OUTPUTS alone.
  std::vector<int> runs;
};

// Divides each dense layer or convolution that `splits` has, by name. By
// OUTPUTS each part makes a range of channels, from all of the source. Batch
// norms, activations, dropout, pools and reshapes that alone read what it makes
// are of the same parts, on their devices; then a Concat makes the whole,
// unless a layer by INPUTS reads the parts: each part of that makes a summand
// of all of its channels, the first one with the bias, and an Add makes their
// sum, before the ReLU if it has one. REQUIRES: CheckSplits; every ReLU that
// can be is merged.
void SplitLayers(const std::map<std::string, LayerSplit>& splits,
                 Program* program);

}  // namespace muster

#endif  // WORKER_MODEL_SPLIT_LAYERS_H_
