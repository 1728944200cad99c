#include "worker/input/data_set/data_set_registry.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {

std::vector<std::string> LabelNames(const DataSetRequest& request) {
  const std::string field = request.spec.label_column().empty()
                                ? "label"
                                : request.spec.label_column();
  if (request.labels.kind == LabelKind::kClass) return {field};
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(field, ',')) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

}  // namespace muster
