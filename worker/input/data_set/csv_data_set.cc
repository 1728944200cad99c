#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/csv_table.h"

namespace muster {
namespace {

constexpr char kDefaultLabel[] = "label";

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
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
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

std::string LabelColumn(const InputSpec& spec) {
  return spec.label_column().empty() ? kDefaultLabel : spec.label_column();
}

absl::StatusOr<CsvTable> ReadTable(const InputSpec& spec, Split split,
                                   const CsvTable::Options& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FindPart(spec.dir(), split, {{".csv", ".tsv"}}));
  return CsvTable::Read(paths, options);
}

absl::StatusOr<CsvTable> ReadClasses(const InputSpec& spec, Split split,
                                     CsvType type,
                                     std::vector<std::string> classes) {
  CsvTable::Options options;
  options.labels = {{LabelColumn(spec), type, std::move(classes)}};
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

// The classes of both halves, names or numbers, are the training half's.
absl::StatusOr<CsvTable> ReadClassified(const DataSetRequest& request,
                                        std::vector<std::string>* names) {
  ASSIGN_OR_RETURN(CsvTable table, ReadClasses(request.spec, Split::kTrain,
                                               CsvType::kClass, {}));
  *names = table.labels()[0].classes;
  if (request.split == Split::kTrain) return table;
  const CsvType type = names->empty() ? CsvType::kInteger : CsvType::kClass;
  ASSIGN_OR_RETURN(table,
                   ReadClasses(request.spec, request.split, type, *names));
  RETURN_IF_ERROR(CheckClasses(table));
  return table;
}

// input.label_column names the columns of the targets, separated by commas.
absl::StatusOr<CsvTable> ReadTargets(const DataSetRequest& request) {
  CsvTable::Options options;
  options.labels.clear();
  for (const absl::string_view name :
       absl::StrSplit(LabelColumn(request.spec), ',')) {
    options.labels.push_back({std::string(absl::StripAsciiWhitespace(name))});
  }
  const auto found = static_cast<int64_t>(options.labels.size());
  if (found == request.labels.num_targets) {
    return ReadTable(request.spec, request.split, options);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input.label_column: the model's loss compares ",
      request.labels.num_targets,
      " outputs, wanted as many columns, separated ", "by commas, found ",
      found, " (", LabelColumn(request.spec), ")"));
}

// The labels, and so the training half, need not be there.
absl::StatusOr<CsvTable> ReadUnlabelled(const DataSetRequest& request,
                                        std::vector<std::string>* names) {
  const absl::StatusOr<CsvTable> train =
      ReadClasses(request.spec, Split::kTrain, CsvType::kClass, {});
  if (train.ok()) *names = train->labels()[0].classes;
  CsvTable::Options options;
  options.labels.clear();
  for (const absl::string_view name :
       absl::StrSplit(LabelColumn(request.spec), ',')) {
    options.ignored.emplace_back(absl::StripAsciiWhitespace(name));
  }
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
      FitExample(
          {columns}, request.example_shape,
          absl::StrCat("the CSV files in '", request.spec.dir(),
                       "' (all columns but '", LabelColumn(request.spec), "')"))
          .status());
  return std::unique_ptr<DataSet>(
      new CsvDataSet(std::move(table), request.example_shape,
                     request.labels.kind, std::move(names)));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "csv", {"rows of train*.csv and test*.csv (or .tsv): numbers, and a label",
            &CsvDataSet::Create, /*has_label_column=*/true,
            /*has_feature_column=*/false, /*has_targets=*/true});

}  // namespace
}  // namespace muster
