#ifndef WORKER_INPUT_DATA_SET_PARTS_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_PARTS_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/class_weights.h"
#include "worker/input/data_set/column_matcher.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/part.h"
#include "worker/input/data_set/row_mapper.h"
#include "worker/input/file/class_names.h"

namespace muster {

// The rows of the parts of a half, one part after the other: what all types of
// data set have in common. Immutable once it is opened, thread-safe.
class PartsDataSet : public DataSet {
 public:
  // Opens the parts of the half, reads all labels, and the first row's values.
  // The names of classes are the training half's. Errors: those of the type's
  // functions and of ExampleColumns; InvalidArgument (no rows, parts that
  // differ, bad rows).
  static absl::StatusOr<std::unique_ptr<PartsDataSet>> Open(
      const DataSetType& type, const DataSetRequest& request);

  // From now on a class is targets: itself, if there is one target, else 1 at
  // its place and 0 elsewhere. Errors: InvalidArgument (more classes than
  // targets, if there are several).
  absl::Status MakeTargetsOfClasses(int64_t num_targets);
  // From now on rows go through input.map; null: as they are. In training
  // (ReadInEpoch) its random numbers are a function of (seed, epoch, index);
  // else there are none.
  void set_mapper(std::unique_ptr<RowMapper> mapper) {
    mapper_ = std::move(mapper);
  }

  int64_t num_examples() const override {
    return ends_.empty() ? 0 : ends_.back();
  }
  Split half() const override { return request_.split; }
  const Shape& example_shape() const override {
    return mapper_ == nullptr ? request_.example_shape
                              : mapper_->example_shape();
  }
  int64_t num_classes() const override {
    return num_class_targets_ > 0 ? 0 : num_classes_;
  }
  std::vector<std::string> ClassNames() const override { return names_; }
  int64_t num_targets() const override {
    return num_class_targets_ + request_.labels.num_targets;
  }
  bool has_weights() const override { return request_.labels.weighted; }
  std::string RowName(int64_t index) const override;
  std::vector<std::string> Files() const override { return files_; }
  std::vector<std::string> Remarks() const override { return remarks_; }
  DataSchema Schema() const override;
  std::string LargestLabelPlace() const override;
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    return ReadMapped(index, std::nullopt, into);
  }
  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override {
    return ReadMapped(index, epoch, into);
  }

 private:
  PartsDataSet(const DataSetType& type, const DataSetRequest& request)
      : type_(type),
        request_(request),
        matcher_(type, request),
        num_values_(request.example_shape.num_elements()) {}

  // The part of a row, which becomes the row there.
  const Part& PartOf(int64_t* row) const;
  // Shows the progress of so many rows of the half.
  void BeginWork(absl::string_view name, int64_t total) const;
  absl::Status OpenParts();
  absl::Status AddPart(const PartFiles& files);
  absl::Status AddColumns(const Part& part, ExampleColumns columns);
  absl::Status FindClassNames();
  // Learns the names of classes from all rows.
  absl::Status CollectClassNames();
  // Checks the classes of all rows against the run's, whose number it takes.
  absl::Status CheckClasses();
  // A line about the run's classes that no row has.
  void SayMissingClasses();
  // Learns the number of classes from all rows, and finds those that are bad.
  absl::Status ReadLabels();
  absl::Status CheckFirstRow() const;

  bool SkipsLabel(const absl::Status& status) const;
  // The row is whole, and of a class that the run does not know: no bad record.
  bool IsUnknownClass(const Row& row) const;
  // The classes of rows are the run's.
  bool has_classes_of_run() const {
    return request_.run != nullptr &&
           request_.run->label().kind() == kClassLabel;
  }
  bool skips_bad() const { return request_.spec.on_bad_record() == SKIP; }
  absl::Status ReadRow(int64_t index, absl::Span<const size_t> wanted,
                       Row* row) const;
  absl::Status ReadMapped(int64_t index, std::optional<int64_t> epoch,
                          const ExampleMemory& into) const;
  absl::Status ReadStored(int64_t index, const ExampleMemory& into) const;
  absl::Status ReadLabel(const Row& row, const ExampleMemory& into) const;
  void WriteClass(int32_t label, const ExampleMemory& into) const;
  absl::Status WithPlace(const absl::Status& status, int64_t index) const;

  const DataSetType type_;
  const DataSetRequest request_;
  ColumnMatcher matcher_;
  // Values of an example.
  const int64_t num_values_;
  std::vector<std::string> files_;
  std::vector<std::string> remarks_;
  std::vector<std::unique_ptr<Part>> parts_;
  // The rows of each part and of those before it.
  std::vector<int64_t> ends_;
  // The columns of the first part's file.
  std::vector<Column> known_;
  // Absent: no row shows any columns.
  std::optional<ExampleColumns> columns_;
  // By index; none: classes are numbers.
  std::vector<std::string> names_;
  std::optional<muster::ClassNames> known_names_;
  int64_t num_classes_ = 0;
  // By row; below 0 for bad ones. None: they are read with the values.
  std::vector<int32_t> classes_;
  ClassWeights class_weights_;
  // The row that has the largest class; below 0: none was read.
  int64_t largest_row_ = -1;
  // Above 0: a class stands for so many targets.
  int64_t num_class_targets_ = 0;
  std::unique_ptr<RowMapper> mapper_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_PARTS_DATA_SET_H_
