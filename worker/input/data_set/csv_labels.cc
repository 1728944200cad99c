#include "worker/input/data_set/csv_labels.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {

std::string CsvLabelColumn(const InputSpec& spec) {
  return spec.label_column().empty() ? "label" : spec.label_column();
}

std::vector<std::string> CsvLabelColumns(const InputSpec& spec) {
  std::vector<std::string> names;
  for (const absl::string_view name :
       absl::StrSplit(CsvLabelColumn(spec), ',')) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

absl::StatusOr<std::vector<CsvColumn>> CsvTargetColumns(
    const DataSetRequest& request) {
  std::vector<CsvColumn> columns;
  for (std::string& name : CsvLabelColumns(request.spec)) {
    columns.push_back({std::move(name)});
  }
  const auto found = static_cast<int64_t>(columns.size());
  if (found == request.labels.num_targets) return columns;
  return absl::InvalidArgumentError(absl::StrCat(
      "input.label_column: the model's loss compares ",
      request.labels.num_targets,
      " outputs, wanted as many columns, separated by commas, found ", found,
      " (", CsvLabelColumn(request.spec), ")"));
}

}  // namespace muster
