#include "worker/client/pushed_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"

namespace muster {

absl::StatusOr<PushedRows> PushedRows::Cut(
    const ClientModel& model, const RowPush& push,
    absl::Span<const std::vector<int64_t>> tensor_versions,
    absl::Span<const int> tensor_parts) {
  PushedRows made;
  std::vector<RowParts::Ids> ids;
  for (const RowGradients& rows : push.rows) {
    ids.push_back({rows.table, rows.ids});
  }
  RowParts::Options options;
  options.every_ps = true;
  for (const int parts : tensor_parts) {
    options.most_parts.push_back(kMaxStepParts - parts);
  }
  ASSIGN_OR_RETURN(made.parts, RowParts::Cut(model, ids, options));
  for (const RowGradients& rows : push.rows) {
    RETURN_IF_ERROR(model.CheckRows(rows.table, "gradients", rows.ids.size(),
                                    rows.gradients.size()));
    made.columns.push_back(
        {{rows.gradients.data(),
          static_cast<size_t>(model.tables[rows.table].dim()) *
              sizeof(float)}});
  }
  if (!push.versions.empty() && push.versions.size() != tensor_parts.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: ", push.versions.size(), " versions, wanted ",
                     tensor_parts.size(), ", one a ps task"));
  }
  for (size_t ps = 0; ps < tensor_versions.size(); ++ps) {
    const std::vector<int64_t>& of = tensor_versions[ps];
    const bool is_known = !push.versions.empty() && push.versions[ps] >= 0;
    made.versions.push_back(is_known ? push.versions[ps]
                                     : *std::min_element(of.begin(), of.end()));
  }
  return made;
}

}  // namespace muster
