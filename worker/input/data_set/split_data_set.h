#ifndef WORKER_INPUT_DATA_SET_SPLIT_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_SPLIT_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// The rows of a training half that input.test_fraction and
// input.validation_fraction take from it. REQUIRES: both are 0 or more, and
// together less than 1.
struct SplitFractions {
  double test = 0;
  double validation = 0;
};

// The half that a row of a divided training half is of: a function of its
// arguments, so that rows which are appended move none. `row` is its number, or
// a hash of its name. A validation fraction moves no test row.
Split HalfOfRow(const SplitFractions& fractions, uint64_t seed, uint64_t row);

// One half of a training half that is divided. Classes and files are those of
// the whole; a row is read, varied and named by its number there. Immutable,
// thread-safe.
class SplitDataSet : public DataSet {
 public:
  // `whole`: the training half in the folder `dir`, with all rows. A row that
  // has a name, such as an image's file, goes by its name below `dir`, so that
  // those between others move none either. Errors: InvalidArgument if no row is
  // of the half.
  static absl::StatusOr<std::unique_ptr<SplitDataSet>> Create(
      std::unique_ptr<DataSet> whole, absl::string_view dir,
      const SplitFractions& fractions, uint64_t seed, Split split);

  int64_t num_examples() const override {
    return static_cast<int64_t>(rows_.size());
  }
  Split half() const override { return split_; }
  const Shape& example_shape() const override {
    return whole_->example_shape();
  }
  int64_t num_classes() const override { return whole_->num_classes(); }
  std::vector<std::string> ClassNames() const override {
    return whole_->ClassNames();
  }
  int64_t num_targets() const override { return whole_->num_targets(); }
  bool has_weights() const override { return whole_->has_weights(); }
  // The number among all rows, where the whole has no name.
  std::string RowName(int64_t index) const override;
  DataSchema Schema() const override;
  std::vector<std::string> Files() const override { return whole_->Files(); }
  std::vector<std::string> Remarks() const override;
  std::string LargestLabelPlace() const override {
    return whole_->LargestLabelPlace();
  }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    return whole_->Read(rows_[index], into);
  }
  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override {
    return whole_->ReadInEpoch(rows_[index], epoch, into);
  }

 private:
  SplitDataSet(std::unique_ptr<DataSet> whole, const SplitFractions& fractions,
               uint64_t seed, Split split)
      : whole_(std::move(whole)),
        fractions_(fractions),
        seed_(seed),
        split_(split) {}

  const std::unique_ptr<DataSet> whole_;
  const SplitFractions fractions_;
  const uint64_t seed_;
  const Split split_;
  // Of the whole, those of this half.
  std::vector<int64_t> rows_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_SPLIT_DATA_SET_H_
