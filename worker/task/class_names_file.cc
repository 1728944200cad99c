#include "worker/task/class_names_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/config/json.h"

namespace muster {
std::vector<std::string> ReadClassNames(const std::string& train_dir) {
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(train_dir, "/classes.json"));
  if (!text.ok()) return {};
  const auto json = ParseJson(*text);
  if (!json.ok()) return {};
  std::vector<std::string> names;
  for (const JsonValue& item : json->items) names.push_back(item.text);
  return names;
}

}  // namespace muster
