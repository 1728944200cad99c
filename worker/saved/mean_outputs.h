#ifndef WORKER_SAVED_MEAN_OUTPUTS_H_
#define WORKER_SAVED_MEAN_OUTPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/layer/layer.h"

namespace muster {

// Makes `dst` the outputs of several models as one, such that they stand for
// the mean of what the outputs of each stand for:
//   kSoftmax   log of the mean probability, whose softmax that mean is
//   kSigmoid   log(p / (1 - p)) of the mean probability p
//   kIdentity  the mean
// `outputs` has one tensor a model, [rows, num_outputs] as `dst`. Sums are
// float64, in the order of the models; no probability is too small for them.
// The outputs of one model alone stay as they are, bit for bit.
// REQUIRES: a model at least; spans of one length, a multiple of num_outputs.
void MeanOutputs(Prediction prediction, int64_t num_outputs,
                 const std::vector<absl::Span<const float>>& outputs,
                 absl::Span<float> dst);

}  // namespace muster

#endif  // WORKER_SAVED_MEAN_OUTPUTS_H_
