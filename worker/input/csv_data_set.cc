#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set_registry.h"
#include "worker/input/example_layout.h"
#include "worker/input/file/csv_table.h"
#include "worker/input/find_part.h"

namespace muster {
namespace {

constexpr char kDefaultLabel[] = "label";

// The rows of CSV or TSV files: all columns but the label, as they stand.
class CsvDataSet : public DataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const InputSpec& spec, const Shape& input_shape, uint64_t /*seed*/,
      Split split);

  int64_t num_examples() const override { return table_.num_rows(); }
  const Shape& example_shape() const override { return example_shape_; }
  // As many as have names; else one more than the largest label.
  int64_t num_classes() const override { return num_classes_; }
  std::string LargestLabelPlace() const override {
    return table_.Place(LargestLabel());
  }
  absl::Status Read(int64_t index, float* example,
                    int32_t* label) const override {
    table_.ReadRow(index, absl::MakeSpan(example, table_.columns().size()));
    *label = static_cast<int32_t>(table_.Label(index));
    return absl::OkStatus();
  }

 private:
  CsvDataSet(CsvTable table, const Shape& example_shape)
      : table_(std::move(table)), example_shape_(example_shape) {
    const size_t names = table_.label()->classes.size();
    num_classes_ = names > 0
                       ? static_cast<int64_t>(names)
                       : static_cast<int64_t>(table_.Label(LargestLabel())) + 1;
  }

  int64_t LargestLabel() const {
    int64_t largest = 0;
    for (int64_t i = 1; i < table_.num_rows(); ++i) {
      if (table_.Label(i) > table_.Label(largest)) largest = i;
    }
    return largest;
  }

  const CsvTable table_;
  const Shape example_shape_;
  int64_t num_classes_ = 0;
};

absl::StatusOr<CsvTable> ReadTable(const InputSpec& spec, Split split,
                                   CsvType type,
                                   std::vector<std::string> classes) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FindPart(spec.dir(), split, {{".csv", ".tsv"}}));
  CsvTable::Options options;
  options.label = CsvColumn{
      spec.label_column().empty() ? kDefaultLabel : spec.label_column(), type,
      std::move(classes)};
  return CsvTable::Read(paths, options);
}

absl::Status CheckLabels(const CsvTable& table) {
  for (int64_t i = 0; i < table.num_rows(); ++i) {
    if (table.Label(i) >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: a label must be a class from 0, found ",
        table.Label(i), " in ", table.Place(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DataSet>> CsvDataSet::Create(
    const InputSpec& spec, const Shape& input_shape, uint64_t /*seed*/,
    Split split) {
  // The classes of both halves, names or numbers, are the training half's.
  ASSIGN_OR_RETURN(CsvTable table,
                   ReadTable(spec, Split::kTrain, CsvType::kClass, {}));
  if (split == Split::kTest) {
    const std::vector<std::string> classes = table.label()->classes;
    const CsvType type = classes.empty() ? CsvType::kInteger : CsvType::kClass;
    ASSIGN_OR_RETURN(table, ReadTable(spec, split, type, classes));
    RETURN_IF_ERROR(CheckLabels(table));
  }
  const auto columns = static_cast<int64_t>(table.columns().size());
  RETURN_IF_ERROR(FitExample({columns}, input_shape,
                             absl::StrCat("the CSV files in '", spec.dir(),
                                          "' (all columns but '",
                                          table.label()->name, "')"))
                      .status());
  return std::unique_ptr<DataSet>(
      new CsvDataSet(std::move(table), input_shape));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "csv", {"rows of train*.csv and test*.csv (or .tsv): numbers, and a label",
            &CsvDataSet::Create, /*has_label_column=*/true});

}  // namespace
}  // namespace muster
