#include "worker/task/cluster_links.h"

#include <memory>
#include <string>
#include <vector>

#include "common/cluster/task_id.h"
#include "common/rpc/credentials.h"
#include "spdlog/spdlog.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/client/link/shard_link.h"

namespace muster {

WorkerLinks MakeClusterLinks(const ClusterSpec& spec, LinkChoice choice,
                             const Clock* clock) {
  WorkerLinks links;
  const std::vector<std::string> addresses = spec.ps_addresses();
  const auto credentials = InsecureCredentials().channel;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const PeerName peer{TaskName(MakeTaskId(kPsJob, static_cast<int>(i))),
                        addresses[i]};
    links.shards.push_back(MakeShardLink(
        peer, credentials, choice,
        [](const std::string& line) { spdlog::info("{}", line); }, clock));
    if (i > 0) continue;
    links.coordination =
        std::make_unique<GrpcCoordinationLink>(peer, credentials);
  }
  return links;
}

}  // namespace muster
