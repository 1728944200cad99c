#ifndef COMMON_CLUSTER_CLUSTER_SOURCE_H_
#define COMMON_CLUSTER_CLUSTER_SOURCE_H_

#include <optional>
#include <string>

#include "common/cluster/cluster_spec.h"

namespace muster {

// The cluster by one source (flags, a file, TF_CONFIG). Anything may be
// missing.
struct ClusterSource {
  // For messages: "--cluster=c.json", "TF_CONFIG".
  std::string name;
  std::optional<ClusterSpec> spec;
  // Own task.
  std::optional<std::string> job;
  std::optional<int> index;
  // Not "" if the source has something, but no cluster: what it has instead.
  std::string instead;
};

}  // namespace muster

#endif  // COMMON_CLUSTER_CLUSTER_SOURCE_H_
