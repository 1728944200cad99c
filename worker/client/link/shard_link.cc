#include "worker/client/link/shard_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "common/rpc/credentials.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/client/link/grpc_parameter_link.h"
#include "worker/client/link/shared_memory_link.h"

namespace muster {

std::unique_ptr<ParameterLink> MakeShardLink(
    const PeerName& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    LinkChoice choice, Reporter reporter, const Clock* clock) {
  auto grpc = std::make_unique<GrpcParameterLink>(peer, credentials);
  if (choice == LinkChoice::kGrpc) {
    reporter.Info(absl::StrCat("link to ", peer.task, ": gRPC"));
    return grpc;
  }
  SharedMemoryLink::Options options;
  options.peer = peer;
  options.required = choice == LinkChoice::kSharedMemory;
  options.reporter = std::move(reporter);
  options.clock = clock;
  return std::make_unique<SharedMemoryLink>(std::move(options),
                                            std::move(grpc));
}

WorkerLinks MakeClusterLinks(const ClusterSpec& spec, LinkChoice choice,
                             const Reporter& reporter, const Clock* clock) {
  WorkerLinks links;
  const std::vector<std::string> addresses = spec.ps_addresses();
  const auto credentials = InsecureCredentials().channel;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const PeerName peer{TaskName(MakeTaskId(kPsJob, static_cast<int>(i))),
                        addresses[i]};
    links.shards.push_back(
        MakeShardLink(peer, credentials, choice, reporter, clock));
    if (i > 0) continue;
    links.coordination =
        std::make_unique<GrpcCoordinationLink>(peer, credentials);
  }
  return links;
}

}  // namespace muster
