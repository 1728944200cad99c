#ifndef WORKER_INPUT_DATA_SET_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_DATA_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"
#include "proto/data_schema.pb.h"

namespace muster {

// Which half of a data set. The validation half is a part of the training
// half's rows, by input.validation_fraction.
enum class Split { kTrain, kTest, kValidation };

// "training", "test" or "validation".
inline absl::string_view HalfName(Split half) {
  if (half == Split::kTrain) return "training";
  return half == Split::kTest ? "test" : "validation";
}

// Where one example is written. A null pointer: that part is not wanted.
struct ExampleMemory {
  // example_shape().num_elements() values, row-major.
  float* values = nullptr;
  // The class. REQUIRES: null if num_targets() > 0.
  int32_t* label = nullptr;
  // num_targets() values. REQUIRES: null if that is 0.
  float* targets = nullptr;
  // The row's weight in a loss. REQUIRES: null unless has_weights().
  float* weight = nullptr;
};

// Examples by index, each with a class or with targets: numbers that a model's
// outputs are compared with. Immutable, thread-safe.
class DataSet {
 public:
  virtual ~DataSet() = default;

  virtual int64_t num_examples() const = 0;

  // The half that these rows are.
  virtual Split half() const { return Split::kTest; }

  // The shape of one example, as the model wants it.
  virtual const Shape& example_shape() const = 0;

  // Every label is in [0, num_classes). 0 without classes.
  virtual int64_t num_classes() const = 0;

  // The names of the classes, by index; empty if they have none.
  virtual std::vector<std::string> ClassNames() const { return {}; }

  // The targets of a row; 0 if it has a class, or neither.
  virtual int64_t num_targets() const { return 0; }

  // Rows have weights: that of their class times that of their column.
  virtual bool has_weights() const { return false; }

  // A person's name for a row, such as an image's file; "" for its number.
  virtual std::string RowName(int64_t /*index*/) const { return ""; }

  // What the rows are; those of this half alone, in the field of its Split. It
  // has no map.
  virtual DataSchema Schema() const { return {}; }

  // The paths that it is read from; none of what is made by a formula.
  virtual std::vector<std::string> Files() const { return {}; }

  // What a person ought to know of the half as it was found, a line each, such
  // as files that are passed over.
  virtual std::vector<std::string> Remarks() const { return {}; }

  // Where the largest label was read, for an error about it: "row 7 of 'FILE'";
  // "" if it comes from no file.
  virtual std::string LargestLabelPlace() const { return ""; }

  // Writes example `index`: its values (bytes as byte / 255), and its class or
  // its targets. REQUIRES: 0 <= index < num_examples(). Errors, of sets that
  // read as they are asked: those of the file, with its name and the row.
  virtual absl::Status Read(int64_t index, const ExampleMemory& into) const = 0;

  // The same for training, where a set may vary an example from epoch to epoch.
  // A function of its arguments and the set.
  virtual absl::Status ReadInEpoch(int64_t index, int64_t /*epoch*/,
                                   const ExampleMemory& into) const {
    return Read(index, into);
  }
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_DATA_SET_H_
