#ifndef COMMON_CLUSTER_CLUSTER_JSON_H_
#define COMMON_CLUSTER_CLUSTER_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster_source.h"

namespace muster {

// Reads a cluster in TensorFlow's JSON shape. A job is a list, or a map of
// task indices with gaps:
//   {"ps": ["h0:2222"], "worker": {"0": "h1:2222", "3": "h2:2222"}}
// or, of workers that come and go, "any".
// The jobs may also stand under the key "cluster", as in TF_CONFIG; then
// {"task": {"type": "worker", "index": 1}} beside it is the own task (its
// index may be the string "1"), and other keys are ignored.
// `name` names the source in messages.
// Errors: InvalidArgument, "name:line:column: ...".
absl::StatusOr<ClusterSource> ParseClusterJson(absl::string_view text,
                                               absl::string_view name);

// Reads the value of the environment variable TF_CONFIG, which has the same
// shape, always with "cluster" and "task" if any. An empty text, or one
// without tasks in "cluster", gives a source that names no cluster, and has
// what there is `instead`. Keys that TensorFlow does not know are ignored
// beside both "cluster" and "task", else an error: one of the two may be meant.
absl::StatusOr<ClusterSource> ParseTfConfig(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CLUSTER_CLUSTER_JSON_H_
