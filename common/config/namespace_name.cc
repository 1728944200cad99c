#include "common/config/namespace_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"

namespace muster {

std::string QuotedNamespace(absl::string_view name) {
  return absl::StrCat("namespace '", EscapeForLog(name, kMaxNamespaceName),
                      "'");
}

absl::Status CheckNamespaceName(absl::string_view what,
                                absl::string_view name) {
  const bool is_name =
      name.size() <= kMaxNamespaceName &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '/' ||
               c == '-';
      });
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", QuotedNamespace(name),
                   "; wanted letters, digits and _./- , "
                   "at most ",
                   kMaxNamespaceName, " of them"));
}

}  // namespace muster
