#ifndef COMMON_CONFIG_DESCRIBE_TYPES_H_
#define COMMON_CONFIG_DESCRIBE_TYPES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/config/attributes.h"

namespace muster {

// Every entry of a Registry whose entries have `help` and `attributes`:
//   "dense: each output is a weighted sum of all inputs\n"
//   "    units: int, required, >= 1: output values\n"
template <typename Registry>
std::string DescribeTypes() {
  std::string text;
  for (const std::string& name : Registry::Names()) {
    const auto type = Registry::Find(name);
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

#endif  // COMMON_CONFIG_DESCRIBE_TYPES_H_
