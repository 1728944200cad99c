#ifndef COMMON_CLUSTER_CLUSTER_TEXT_H_
#define COMMON_CLUSTER_CLUSTER_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster_spec.h"

namespace muster {

// Reads a cluster as protobuf text, which is also how TensorFlow prints a
// ClusterDef:
//   job { name: "ps" tasks { key: 0 value: "localhost:2222" } }
// `name` names the source in messages.
// Errors: InvalidArgument, "name:line:column: ..." or "name: ...".
absl::StatusOr<ClusterSpec> ParseClusterText(absl::string_view text,
                                             absl::string_view name);

}  // namespace muster

#endif  // COMMON_CLUSTER_CLUSTER_TEXT_H_
