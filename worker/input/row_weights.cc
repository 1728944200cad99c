#include "worker/input/row_weights.h"

#include <cstdint>

namespace muster {

void NormalizeWeights(absl::Span<Batch> batches) {
  double sum = 0;
  int64_t rows = 0;
  for (Batch& batch : batches) {
    if (batch.Find(kBatchWeights) == nullptr) return;
    batch.weight = 0;
    for (const float weight : batch.weights().first(batch.rows)) {
      batch.weight += weight;
    }
    sum += batch.weight;
    rows += batch.rows;
  }
  if (sum == 0) return;
  for (Batch& batch : batches) {
    for (float& weight : batch.weights().first(batch.rows)) {
      weight = static_cast<float>(weight * (static_cast<double>(rows) / sum));
    }
  }
}

}  // namespace muster
