#ifndef WORKER_INPUT_ROW_WEIGHTS_H_
#define WORKER_INPUT_ROW_WEIGHTS_H_

#include "absl/types/span.h"
#include "worker/input/batch.h"

namespace muster {

// Divides the 'weights' of `batches` by their mean over all rows, so that a
// mean over rows of weight times loss is the mean over weights of the losses,
// in however many batches it is made: sum(w l) / sum(w). Weights that are all 0
// stay so. Sets Batch::weight. Batches without 'weights' stay as they are.
void NormalizeWeights(absl::Span<Batch> batches);

}  // namespace muster

#endif  // WORKER_INPUT_ROW_WEIGHTS_H_
