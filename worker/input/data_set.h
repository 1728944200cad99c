#ifndef WORKER_INPUT_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/tensor/shape.h"

namespace muster {

// Which half of a data set.
enum class Split { kTrain, kTest };

// Labelled examples, by index. Immutable, thread-safe.
class DataSet {
 public:
  virtual ~DataSet() = default;

  virtual int64_t num_examples() const = 0;

  // The shape of one example, as the model wants it.
  virtual const Shape& example_shape() const = 0;

  // Every label is in [0, num_classes).
  virtual int64_t num_classes() const = 0;

  // Where the largest label was read, for an error about it: "row 7 of 'FILE'";
  // "" if it comes from no file.
  virtual std::string LargestLabelPlace() const { return ""; }

  // Writes example `index`: example_shape().num_elements() values, row-major
  // (bytes as byte / 255), and its label. REQUIRES: 0 <= index <
  // num_examples(). Errors, of sets that read as they are asked: those of the
  // file, with its name and the row.
  virtual absl::Status Read(int64_t index, float* example,
                            int32_t* label) const = 0;

  // The same for training, where a set may vary an example from epoch to epoch.
  // A function of its arguments and the set.
  virtual absl::Status ReadInEpoch(int64_t index, int64_t /*epoch*/,
                                   float* example, int32_t* label) const {
    return Read(index, example, label);
  }
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_H_
