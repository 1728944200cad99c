#ifndef WORKER_CLIENT_TENSOR_VIEW_H_
#define WORKER_CLIENT_TENSOR_VIEW_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// The bytes of a tensor (or of a run of its elements), canonical, in the
// caller's memory.
struct TensorView {
  const char* data = nullptr;
  int64_t size_bytes = 0;
};

struct MutableTensorView {
  char* data = nullptr;
  int64_t size_bytes = 0;
};

template <typename T>
TensorView ViewOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

template <typename T>
MutableTensorView MutableViewOf(absl::Span<T> values) {
  return {reinterpret_cast<char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

}  // namespace muster

#endif  // WORKER_CLIENT_TENSOR_VIEW_H_
