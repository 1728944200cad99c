#include "ps_server/caller/namespace_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/namespace_name.h"

namespace muster {

absl::Status CheckNewNamespace(absl::string_view what, absl::string_view name,
                               const std::vector<std::string>& names,
                               size_t max_named) {
  if (max_named == 0) {
    return absl::UnimplementedError(absl::StrCat(
        what, ": ", QuotedNamespace(name),
        "; only the default namespace '' is there: this ps serves one job "
        "(ps_server --keep_serving serves several)"));
  }
  RETURN_IF_ERROR(CheckNamespaceName(what, name));
  if (names.size() < max_named) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      what, ": ", QuotedNamespace(name), ": this ps has ", names.size(),
      " already (--max_namespaces): ", absl::StrJoin(names, ", "),
      "; musterctl namespace drop frees one"));
}

}  // namespace muster
