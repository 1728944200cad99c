#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/csv_labels.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/csv_table.h"

namespace muster {
namespace {

// The rows of CSV or TSV files: all columns but the label, as they stand.
class CsvDataSet : public DataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  int64_t num_examples() const override { return table_.num_rows(); }
  const Shape& example_shape() const override { return example_shape_; }
  // As many as have names; else one more than the largest label.
  int64_t num_classes() const override { return num_classes_; }
  std::vector<std::string> ClassNames() const override { return class_names_; }
  int64_t num_targets() const override {
    return kind_ == LabelKind::kTargets
               ? static_cast<int64_t>(table_.labels().size())
               : 0;
  }
  std::string LargestLabelPlace() const override {
    return table_.Place(LargestLabel());
  }
  std::vector<std::string> Files() const override { return table_.paths(); }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    RETURN_IF_ERROR(table_.Check(index));
    table_.ReadRow(index, absl::MakeSpan(into.values, table_.columns().size()));
    if (into.label != nullptr) *into.label = Class(index);
    if (into.targets != nullptr) {
      absl::c_copy(table_.Labels(index), into.targets);
    }
    return absl::OkStatus();
  }

 private:
  CsvDataSet(CsvTable table, const Shape& example_shape, LabelKind kind,
             std::vector<std::string> class_names)
      : table_(std::move(table)),
        example_shape_(example_shape),
        kind_(kind),
        class_names_(std::move(class_names)) {
    if (kind != LabelKind::kClass) return;
    num_classes_ = class_names_.empty()
                       ? Class(LargestLabel()) + 1
                       : static_cast<int64_t>(class_names_.size());
  }

  int32_t Class(int64_t row) const {
    return static_cast<int32_t>(table_.Labels(row)[0]);
  }
  int64_t LargestLabel() const {
    int64_t largest = 0;
    for (int64_t i = 1; i < table_.num_rows(); ++i) {
      if (Class(i) > Class(largest)) largest = i;
    }
    return largest;
  }

  const CsvTable table_;
  const Shape example_shape_;
  const LabelKind kind_;
  const std::vector<std::string> class_names_;
  int64_t num_classes_ = 0;
};

absl::StatusOr<CsvTable> ReadTable(const InputSpec& spec, Split split,
                                   CsvTable::Options options) {
  options.keeps_bad_rows = spec.on_bad_record() == SKIP;
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FindPart(spec.dir(), split, {{".csv", ".tsv"}}));
  return CsvTable::Read(paths, options);
}

absl::StatusOr<CsvTable> ReadClasses(const InputSpec& spec, Split split,
                                     CsvType type,
                                     std::vector<std::string> classes) {
  CsvTable::Options options;
  options.labels = {{CsvLabelColumn(spec), type, std::move(classes)}};
  return ReadTable(spec, split, options);
}

absl::Status CheckClasses(const CsvTable& table) {
  for (int64_t i = 0; i < table.num_rows(); ++i) {
    const float label = table.Labels(i)[0];
    if (label >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: a label must be a class from 0, found ", label,
        " in ", table.Place(i)));
  }
  return absl::OkStatus();
}

// The classes of both halves, names or numbers, are the training half's. Where
// that is a stream they are numbers: nobody reads it for its names.
absl::StatusOr<CsvTable> ReadClassified(const DataSetRequest& request,
                                        std::vector<std::string>* names) {
  if (!request.spec.stream()) {
    ASSIGN_OR_RETURN(CsvTable train, ReadClasses(request.spec, Split::kTrain,
                                                 CsvType::kClass, {}));
    *names = train.labels()[0].classes;
    if (request.split == Split::kTrain) return train;
  }
  const CsvType type = names->empty() ? CsvType::kInteger : CsvType::kClass;
  ASSIGN_OR_RETURN(CsvTable table,
                   ReadClasses(request.spec, request.split, type, *names));
  RETURN_IF_ERROR(CheckClasses(table));
  return table;
}

absl::StatusOr<CsvTable> ReadTargets(const DataSetRequest& request) {
  CsvTable::Options options;
  ASSIGN_OR_RETURN(options.labels, CsvTargetColumns(request));
  return ReadTable(request.spec, request.split, options);
}

// The labels, and so the training half, need not be there.
absl::StatusOr<CsvTable> ReadUnlabelled(const DataSetRequest& request,
                                        std::vector<std::string>* names) {
  if (!request.spec.stream()) {
    const absl::StatusOr<CsvTable> train =
        ReadClasses(request.spec, Split::kTrain, CsvType::kClass, {});
    if (train.ok()) *names = train->labels()[0].classes;
  }
  CsvTable::Options options;
  options.labels.clear();
  options.ignored = CsvLabelColumns(request.spec);
  return ReadTable(request.spec, request.split, options);
}

absl::StatusOr<std::unique_ptr<DataSet>> CsvDataSet::Create(
    const DataSetRequest& request) {
  std::vector<std::string> names;
  const auto read = [&]() -> absl::StatusOr<CsvTable> {
    switch (request.labels.kind) {
      case LabelKind::kClass:
        return ReadClassified(request, &names);
      case LabelKind::kTargets:
        return ReadTargets(request);
      case LabelKind::kNone:
        return ReadUnlabelled(request, &names);
    }
    return absl::InternalError("a kind of labels without a way to read it");
  };
  ASSIGN_OR_RETURN(CsvTable table, read());
  const auto columns = static_cast<int64_t>(table.columns().size());
  RETURN_IF_ERROR(
      FitExample({columns}, request.example_shape,
                 absl::StrCat("the CSV files in '", request.spec.dir(),
                              "' (all columns but '",
                              CsvLabelColumn(request.spec), "')"))
          .status());
  return std::unique_ptr<DataSet>(
      new CsvDataSet(std::move(table), request.example_shape,
                     request.labels.kind, std::move(names)));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "csv",
    WholeType(
        "rows of train*.csv and test*.csv (or .tsv): numbers, and a label",
        &CsvDataSet::Create, /*has_label_column=*/true,
        /*has_feature_column=*/false, /*has_targets=*/true));

}  // namespace
}  // namespace muster
