#include "common/cluster/cluster_text.h"

#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "proto/cluster.pb.h"

namespace muster {

absl::StatusOr<ClusterSpec> ParseClusterText(absl::string_view text,
                                             absl::string_view name) {
  ClusterDef def;
  RETURN_IF_ERROR(ParseTextProto(text, name, &def));
  auto spec = ClusterSpec::Create(def);
  if (!spec.ok()) return Annotate(spec.status(), name);
  return spec;
}

}  // namespace muster
