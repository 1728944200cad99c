#ifndef WORKER_INPUT_DATA_SET_CLASS_TARGETS_H_
#define WORKER_INPUT_DATA_SET_CLASS_TARGETS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// A data set of classes, as targets: the class itself if there is one target,
// else 1 at the class's place and 0 elsewhere. Thread-safe.
class ClassTargets : public DataSet {
 public:
  // Errors: InvalidArgument (more classes than targets, if there are several).
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      std::unique_ptr<DataSet> classes, int64_t num_targets);

  int64_t num_examples() const override { return classes_->num_examples(); }
  const Shape& example_shape() const override {
    return classes_->example_shape();
  }
  int64_t num_classes() const override { return 0; }
  std::vector<std::string> ClassNames() const override {
    return classes_->ClassNames();
  }
  int64_t num_targets() const override { return num_targets_; }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;

 private:
  ClassTargets(std::unique_ptr<DataSet> classes, int64_t num_targets)
      : classes_(std::move(classes)), num_targets_(num_targets) {}

  const std::unique_ptr<DataSet> classes_;
  const int64_t num_targets_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_CLASS_TARGETS_H_
