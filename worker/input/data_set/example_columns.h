#ifndef WORKER_INPUT_DATA_SET_EXAMPLE_COLUMNS_H_
#define WORKER_INPUT_DATA_SET_EXAMPLE_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_image.h"
#include "worker/input/data_set/part.h"
#include "worker/input/file/class_names.h"

namespace muster {

// The columns of an example and of its label, and how their cells become what a
// model reads. The values of an example are the run's columns, found by name in
// the run's order, or without a run all columns but the labels and
// input.weight_column, one after the other: as many values of another shape are
// reshaped ([28, 28] as [1, 28, 28] or [784]), and [H, W, C] is turned into the
// model's [C, H, W]. Immutable, thread-safe. Errors of reading: InvalidArgument
// and DataLoss with the column, without the row.
class ExampleColumns {
 public:
  // The columns of `part`. `owner`: whose the columns of request.run are, for
  // messages. Errors: InvalidArgument with the part's file, what was wanted and
  // what to do (no such label, values of another number; a column of the run
  // that is missing, or has another kind or shape).
  static absl::StatusOr<ExampleColumns> Create(
      const DataSetRequest& request, const Part& part,
      absl::string_view owner = "the run");

  // Those of a part whose first column is a whole example, in the order and
  // shape that the model reads, and whose others are its labels.
  static ExampleColumns OfTable(const DataSetRequest& request,
                                const Part& part);

  const std::vector<Column>& columns() const { return columns_; }
  // The indices of all columns that are read; of an example's values, and of
  // the labels, alone.
  const std::vector<size_t>& all() const { return all_; }
  const std::vector<size_t>& values() const { return values_; }
  const std::vector<size_t>& labels() const { return labels_; }
  // The column of the rows' weights, if they are wanted and have one.
  const std::optional<size_t>& weight() const { return weight_; }
  // Those that the run does not have, and which are not read.
  const std::vector<size_t>& left_out() const { return left_out_; }
  // Adds the columns of the values and of the labels, and the number of classes
  // if the part says it.
  void Describe(DataSchema* schema) const;
  // The label is one column of texts.
  bool has_texts() const;
  // The channels are turned from the last dimension to the first.
  bool turns_channels() const { return turns_channels_; }

  // Writes the values of an example; `dst` has as many as its shape. Numbers
  // may be there already, unless turns_channels() (Row::target).
  absl::Status ReadValues(const Row& row, float* dst) const;

  // The text of a row's class. REQUIRES: has_texts().
  absl::string_view ClassText(const Row& row) const {
    return std::get<absl::string_view>(row.cells[labels_[0]]);
  }

  // The class of a row: its integer, or the index of its text in `names`; null:
  // the text is the integer.
  absl::StatusOr<int32_t> ReadClass(const Row& row,
                                    const ClassNames* names) const;

  // Writes as many targets as the request wants.
  absl::Status ReadTargets(const Row& row, float* dst) const;

  // Writes the row's weight; 1 without weight().
  absl::Status ReadWeight(const Row& row, float* dst) const;

 private:
  ExampleColumns(const DataSetRequest& request, const Part& part);

  absl::Status FindValues(const DataSetRequest& request, const Part& part,
                          absl::string_view owner);
  absl::Status FindLabels(const DataSetRequest& request, const Part& part,
                          absl::string_view owner);
  // Takes the weights' column, the last of labels_, out of these.
  void SplitWeight(const DataSetRequest& request);
  absl::Status CheckLabels(const DataSetRequest& request,
                           const Part& part) const;
  absl::Status FitValues(const DataSetRequest& request, const Part& part);
  absl::Status ReadCell(size_t column, const Cell& cell, int64_t count,
                        float* dst) const;
  absl::Status ReadBytes(absl::Span<const uint8_t> bytes, int64_t count,
                         bool turns, float* dst) const;

  std::vector<Column> columns_;
  Shape shape_;
  int64_t num_targets_;
  std::vector<size_t> values_;
  // How many values each of those has.
  std::vector<int64_t> counts_;
  std::vector<size_t> labels_;
  std::optional<size_t> weight_;
  std::vector<size_t> all_;
  std::vector<size_t> left_out_;
  bool turns_channels_ = false;
  // The example is an image file.
  std::optional<ExampleImage> image_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_EXAMPLE_COLUMNS_H_
