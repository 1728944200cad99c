#ifndef WORKER_INPUT_BATCH_H_
#define WORKER_INPUT_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {

// The tensor that a model reads as its input, and the one that its loss reads:
// int32 classes, or float32 targets.
inline constexpr absl::string_view kBatchInput = "input";
inline constexpr absl::string_view kBatchLabels = "labels";
// Where a training weighs rows: float32, one a row, factors of each row's loss.
inline constexpr absl::string_view kBatchWeights = "weights";

// One tensor of a batch: [room for rows, row_shape...], row-major.
struct BatchTensor {
  std::string name;
  DataType dtype = DATA_TYPE_UNSPECIFIED;
  Shape row_shape;
  AlignedBuffer storage;

  // All values there is room for. REQUIRES: T is of `dtype`.
  template <typename T>
  absl::Span<T> as() {
    return {storage.as<T>(), storage.size_bytes() / sizeof(T)};
  }
  template <typename T>
  absl::Span<const T> as() const {
    return {storage.as<T>(), storage.size_bytes() / sizeof(T)};
  }
};

// The examples of one step, as named tensors whose first dimension is the row.
// Buffers are made once, for the largest number of rows, and used again:
//
//   Batch batch = MakeLabelledBatch(128, Shape({28, 28}));
//   batch.Add("age", FLOAT32, Shape(), 128);
//   ASSIGN_OR_RETURN(absl::Span<float> ages, batch.Get<float>("age"));
//   batch.labels()[127] = 3;
struct Batch {
  std::vector<BatchTensor> tensors;
  // Rows of each tensor that are filled; those after them hold nothing of
  // meaning.
  int64_t rows = 0;
  // The number of these contents, a NewBatchId(); 0: none.
  int64_t id = 0;
  // The sum of the rows' weights as the data have them, where 'weights' has
  // been normalized (row_weights.h).
  double weight = 0;

  // Adds a tensor of zeros with room for `room` rows. REQUIRES: a known type,
  // and no other tensor of this name.
  void Add(absl::string_view name, DataType dtype, const Shape& row_shape,
           int64_t room);

  // The values of a tensor, as many as there is room for; allocates nothing.
  // Errors: NotFound (lists what there is); InvalidArgument if it is of another
  // type.
  template <typename T>
  absl::StatusOr<absl::Span<T>> Get(absl::string_view name) {
    ASSIGN_OR_RETURN(const int index, IndexOf(name, DataTypeOf<T>::kValue));
    return tensors[index].as<T>();
  }
  template <typename T>
  absl::StatusOr<absl::Span<const T>> Get(absl::string_view name) const {
    ASSIGN_OR_RETURN(const int index, IndexOf(name, DataTypeOf<T>::kValue));
    return tensors[index].as<T>();
  }

  // float32 'input'; int32 'labels', one a row, each in [0, classes), or
  // float32, the targets of each row. REQUIRES: they are there, and of these
  // types.
  absl::Span<float> input() { return *Get<float>(kBatchInput); }
  absl::Span<const float> input() const { return *Get<float>(kBatchInput); }
  absl::Span<int32_t> labels() { return *Get<int32_t>(kBatchLabels); }
  absl::Span<const int32_t> labels() const {
    return *Get<int32_t>(kBatchLabels);
  }
  absl::Span<float> targets() { return *Get<float>(kBatchLabels); }
  absl::Span<const float> targets() const { return *Get<float>(kBatchLabels); }
  // 'labels' of either type. REQUIRES: they are there.
  const BatchTensor& label_tensor() const { return *Find(kBatchLabels); }
  // 'weights'. REQUIRES: they are there.
  absl::Span<float> weights() { return *Get<float>(kBatchWeights); }
  absl::Span<const float> weights() const { return *Get<float>(kBatchWeights); }
  // The tensor of this name; null: there is none.
  const BatchTensor* Find(absl::string_view name) const;

 private:
  // The index among `tensors`. Errors: those of Get.
  absl::StatusOr<int> IndexOf(absl::string_view name, DataType dtype) const;
};

// A number that no other filling of any batch has. Thread-safe.
int64_t NewBatchId();

// A batch of no rows yet, with room for `room` of 'input' and 'labels', which
// are classes, or `num_targets` targets a row.
Batch MakeLabelledBatch(int64_t room, const Shape& row_shape,
                        int64_t num_targets = 0);

// A batch, and what a step with it draws from where it is random (dropout).
struct SeededBatch {
  // Null: none.
  const Batch* batch = nullptr;
  uint64_t seed = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_BATCH_H_
