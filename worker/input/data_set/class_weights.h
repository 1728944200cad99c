#ifndef WORKER_INPUT_DATA_SET_CLASS_WEIGHTS_H_
#define WORKER_INPUT_DATA_SET_CLASS_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

// The weight of a class's rows by its number. Immutable, thread-safe.
class ClassWeights {
 public:
  // Each class weighs 1.
  ClassWeights() = default;

  // Those of `labels` for the classes with these names by number, bytes; none:
  // they are the numbers below `num_classes`. Errors: InvalidArgument naming a
  // class that is not among them.
  static absl::StatusOr<ClassWeights> Create(
      const LabelSpec& labels, const std::vector<std::string>& names,
      int64_t num_classes);

  // Multiplies the weight of a row by that of its class. Errors:
  // InvalidArgument if a float has no room for the product.
  absl::Status Weigh(int32_t label, float* weight) const;

 private:
  // Empty: all are 1.
  std::vector<float> by_class_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_CLASS_WEIGHTS_H_
