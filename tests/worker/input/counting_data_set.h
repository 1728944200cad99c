#ifndef TESTS_WORKER_INPUT_COUNTING_DATA_SET_H_
#define TESTS_WORKER_INPUT_COUNTING_DATA_SET_H_

#include <cstdint>

#include "worker/input/data_set/data_set.h"

namespace muster {

// Example i is [i, i + 0.5] with label i, so that a batch shows what it was
// made of.
class CountingDataSet : public DataSet {
 public:
  explicit CountingDataSet(int64_t num_examples)
      : num_examples_(num_examples) {}

  int64_t num_examples() const override { return num_examples_; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return num_examples_; }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    into.values[0] = static_cast<float>(index);
    into.values[1] = static_cast<float>(index) + 0.5f;
    if (into.label != nullptr) *into.label = static_cast<int32_t>(index);
    return absl::OkStatus();
  }

 private:
  const Shape shape_ = Shape({2});
  const int64_t num_examples_;
};

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_COUNTING_DATA_SET_H_
