#include "worker/client/link/shard_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/client/link/grpc_parameter_link.h"
#include "worker/client/link/shared_memory_link.h"

namespace muster {
namespace {

// The task whose process ps i is in.
TaskId ProcessOf(const ClusterSpec& spec, int ps) {
  for (const TaskId& task : spec.training_tasks()) {
    if (spec.ShardOf(task) == ps) return task;
  }
  return MakeTaskId(kPsJob, ps);
}

}  // namespace

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

WorkerLinks MakeClusterLinks(const ClusterSpec& spec,
                             const TaskCredentials& credentials,
                             LinkChoice choice, const Reporter& reporter,
                             const Clock* clock) {
  WorkerLinks links;
  const std::vector<std::string> addresses = spec.ps_addresses();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const PeerName peer{TaskName(MakeTaskId(kPsJob, static_cast<int>(i))),
                        addresses[i]};
    const TaskId process = ProcessOf(spec, static_cast<int>(i));
    const auto channel = credentials.channel_to(process.job(), process.index());
    links.shards.push_back(
        MakeShardLink(peer, channel, choice, reporter, clock));
    if (i > 0) continue;
    links.coordination = std::make_unique<GrpcCoordinationLink>(peer, channel);
  }
  return links;
}

}  // namespace muster
