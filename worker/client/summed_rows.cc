#include "worker/client/summed_rows.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace muster {

SummedRows SumEqualIds(absl::Span<const int64_t> ids,
                       absl::Span<const float> gradients, int64_t dim) {
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [ids](size_t a, size_t b) { return ids[a] < ids[b]; });
  SummedRows summed;
  for (const size_t row : order) {
    const auto gradient = gradients.subspan(row * dim, dim);
    if (summed.ids.empty() || summed.ids.back() != ids[row]) {
      summed.ids.push_back(ids[row]);
      summed.gradients.insert(summed.gradients.end(), gradient.begin(),
                              gradient.end());
      continue;
    }
    float* const sum = summed.gradients.data() + summed.gradients.size() - dim;
    for (int64_t i = 0; i < dim; ++i) sum[i] += gradient[i];
  }
  return summed;
}

}  // namespace muster
