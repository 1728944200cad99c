#include "worker/client/link/shard_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/client/link/grpc_parameter_link.h"
#include "worker/client/link/shared_memory_link.h"
#include "worker/client/link/tcp_link.h"

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

std::unique_ptr<ParameterLink> MakeShardLink(const ShardPeer& peer,
                                             const TaskCredentials& credentials,
                                             LinkChoice choice,
                                             const Reporter& reporter,
                                             const Clock* clock) {
  const TaskId& process = peer.process;
  std::unique_ptr<ParameterLink> link = std::make_unique<GrpcParameterLink>(
      peer.name, credentials.channel_to(process.job(), process.index()));
  if (choice == LinkChoice::kGrpc) {
    reporter.Info(absl::StrCat("link to ", peer.name.task, ": gRPC"));
    return link;
  }
  if (choice != LinkChoice::kSharedMemory) {
    TcpLink::Options options;
    options.peer = peer.name;
    options.open = [dial_over = credentials.dial_over,
                    process](FileDescriptor socket) {
      return dial_over(std::move(socket), process.job(), process.index());
    };
    options.required = choice == LinkChoice::kTcp;
    options.reporter = reporter;
    options.clock = clock;
    link = std::make_unique<TcpLink>(std::move(options), std::move(link));
  }
  if (choice == LinkChoice::kTcp) return link;
  SharedMemoryLink::Options options;
  options.peer = peer.name;
  options.required = choice == LinkChoice::kSharedMemory;
  options.reporter = reporter;
  options.clock = clock;
  return std::make_unique<SharedMemoryLink>(std::move(options),
                                            std::move(link));
}

WorkerLinks MakeClusterLinks(const ClusterSpec& spec,
                             const TaskCredentials& credentials,
                             LinkChoice choice, const Reporter& reporter,
                             const Clock* clock) {
  WorkerLinks links;
  const std::vector<std::string> addresses = spec.ps_addresses();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const int ps = static_cast<int>(i);
    const ShardPeer peer{{TaskName(MakeTaskId(kPsJob, ps)), addresses[i]},
                         ProcessOf(spec, ps)};
    links.shards.push_back(
        MakeShardLink(peer, credentials, choice, reporter, clock));
    if (i > 0) continue;
    links.coordination = std::make_unique<GrpcCoordinationLink>(
        peer.name,
        credentials.channel_to(peer.process.job(), peer.process.index()));
  }
  return links;
}

}  // namespace muster
