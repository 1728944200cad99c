#include "worker/layer/layer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {

std::string DescribeLayers() {
  std::string text;
  for (const std::string& name : LayerRegistry::Names()) {
    const absl::StatusOr<LayerType> type = LayerRegistry::Find(name);
    if (!type.ok()) continue;  // Names come from the registry itself.
    absl::StrAppend(&text, name, ": ", type->help, "\n");
    const std::string attributes = DescribeAttributes(type->attributes);
    for (const absl::string_view line :
         absl::StrSplit(attributes, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, "    ", line, "\n");
    }
  }
  return text;
}

}  // namespace muster
