#include "worker/executor/moving_averages.h"

#include <algorithm>
#include <cstddef>

namespace muster {
namespace {

template <typename T>
absl::Span<T> DeltaOf(const ParameterPlaces& places, int parameter) {
  return {reinterpret_cast<T*>(places.gradient(parameter)),
          static_cast<size_t>(places.sizes_bytes[parameter]) / sizeof(T)};
}

template <typename T>
void Write(absl::Span<const MovingAverage> averages,
           const PlanExecutor& executor, const ParameterPlaces& places) {
  for (const MovingAverage& average : averages) {
    const absl::Span<T> delta = DeltaOf<T>(places, average.parameter);
    std::fill(delta.begin(), delta.end(), T{0});
  }
  for (const MovingAverage& average : averages) {
    const T* batch =
        static_cast<const T*>(executor.Result(average.batch_buffer));
    const absl::Span<T> delta = DeltaOf<T>(places, average.parameter)
                                    .subspan(average.begin, average.count);
    const T scale = static_cast<T>(average.scale);
    const T kept = static_cast<T>(average.kept);
    const T rate = static_cast<T>(1 - average.momentum);
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = kept * delta[i] + rate * (scale * batch[i]);
    }
  }
}

}  // namespace

void WriteMovingAverages(absl::Span<const MovingAverage> averages,
                         const PlanExecutor& executor, DataType dtype,
                         const ParameterPlaces& places) {
  if (dtype == FLOAT64) {
    Write<double>(averages, executor, places);
  } else {
    Write<float>(averages, executor, places);
  }
}

}  // namespace muster
