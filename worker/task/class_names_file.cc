#include "worker/task/class_names_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/read_file.h"
#include "common/config/json.h"
#include "common/config/json_quote.h"
#include "worker/task/result_file.h"

namespace muster {
namespace {

std::string PathIn(const std::string& train_dir) {
  return absl::StrCat(train_dir, "/classes.json");
}

}  // namespace

absl::Status WriteClassNames(const std::string& train_dir,
                             const std::vector<std::string>& names) {
  if (names.empty()) return absl::OkStatus();
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(JsonQuote(name));
  return WriteFileAtomically(
      PathIn(train_dir),
      absl::StrCat("[", absl::StrJoin(quoted, ",\n "), "]\n"));
}

std::vector<std::string> ReadClassNames(const std::string& train_dir) {
  const absl::StatusOr<std::string> text = ReadFile(PathIn(train_dir));
  if (!text.ok()) return {};
  const auto json = ParseJson(*text);
  if (!json.ok()) return {};
  std::vector<std::string> names;
  for (const JsonValue& item : json->items) names.push_back(item.text);
  return names;
}

}  // namespace muster
