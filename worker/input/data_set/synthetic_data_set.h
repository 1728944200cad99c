#ifndef WORKER_INPUT_DATA_SET_SYNTHETIC_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_SYNTHETIC_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/layer/counter_random.h"

namespace muster {

// Examples made by a formula (README.md): the prototype of the class plus
// noise, so that a linear model learns them. The same seed gives the same bits
// on every machine. Immutable, thread-safe.
class SyntheticDataSet : public DataSet {
 public:
  // Reads the synthetic_* fields of the spec; 0 stands for the defaults below.
  // Errors: InvalidArgument for a negative number or too large a set.
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  static constexpr int64_t kDefaultExamples = 10000;
  static constexpr int64_t kDefaultTestExamples = 1000;
  static constexpr int64_t kDefaultClasses = 10;

  int64_t num_examples() const override { return num_examples_; }
  const Shape& example_shape() const override { return example_shape_; }
  int64_t num_classes() const override { return num_classes_; }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;

 private:
  SyntheticDataSet(const Shape& example_shape, int64_t num_examples,
                   int64_t num_classes, uint64_t seed, Split split);

  const Shape example_shape_;
  const int64_t example_elements_;
  const int64_t num_examples_;
  const int64_t num_classes_;
  const CounterRandom labels_;
  const CounterRandom noise_;
  // [num_classes, example_elements], already weighted.
  const std::vector<float> prototypes_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_SYNTHETIC_DATA_SET_H_
