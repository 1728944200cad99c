#include "ps_server/caller/namespace_table.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::Status UnknownNamespace(absl::string_view what, absl::string_view name) {
  return absl::UnimplementedError(
      absl::StrCat(what, ": namespace '", absl::CHexEscape(name.substr(0, 80)),
                   "'; only the default namespace '' is there"));
}

}  // namespace muster
