#ifndef WORKER_INPUT_DATA_SET_COLUMN_MATCHER_H_
#define WORKER_INPUT_DATA_SET_COLUMN_MATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "proto/data_schema.pb.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/part.h"

namespace muster {

// The most classes that `request` may have by its run: all below it are known.
// 0: there is no run, or it does not say. REQUIRES: CheckLabelsOfRun is OK.
int64_t ClassesOfRun(const DataSetRequest& request);

// Whether the labels that are asked for are the run's. OK without a run.
// Errors: InvalidArgument (another kind of labels, other columns of labels or
// another order of them, names where the run has numbers), with both sides.
absl::Status CheckLabelsOfRun(const DataSetType& type,
                              const DataSetRequest& request);

// Finds the columns of the parts of a half by name, one part after the other:
// in the run's order, or else in that of the first part that has any. Not
// thread-safe.
class ColumnMatcher {
 public:
  ColumnMatcher(const DataSetType& type, const DataSetRequest& request)
      : has_label_column_(type.has_label_column), request_(request) {
    found_.set_format(request.spec.type());
  }

  // The columns of `part`. Errors: ExampleColumns::Create's; InvalidArgument
  // (a column that nobody would hear is left out).
  absl::StatusOr<ExampleColumns> Match(const Part& part);

  // Who opened the half has read the remarks: a column that would make another
  // one is refused from now on.
  void CloseRemarks() { is_closed_ = true; }

  // What was found so far: format, columns and label, but for its classes.
  const DataSchema& found() const { return found_; }

  // A line about the columns that are left out, if there are any.
  std::vector<std::string> Remarks() const;

 private:
  absl::Status AddLeftOut(const Part& part, const ExampleColumns& columns);

  const bool has_label_column_;
  // Its run is that of the first part, if there is no other.
  DataSetRequest request_;
  // Whose the columns of `request_.run` are.
  std::string owner_ = "the run";
  bool is_described_ = false;
  bool is_closed_ = false;
  DataSchema found_;
  // All names that were left out, as they came, and the first file with one.
  google::protobuf::RepeatedPtrField<std::string> left_out_;
  absl::flat_hash_set<std::string> are_left_out_;
  std::string file_of_left_out_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_COLUMN_MATCHER_H_
