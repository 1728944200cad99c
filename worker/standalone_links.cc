#include "worker/standalone_links.h"

#include <memory>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/process/memory_limit.h"
#include "common/rpc/incarnation.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"

namespace muster {

WorkerLinks MakeStandaloneLinks(const Clock* clock, int threads,
                                absl::Duration worker_timeout) {
  ShardServer::Options shard;
  // The compute threads have nothing to do while an update is made.
  shard.apply_threads = threads;
  shard.shard.incarnation = NewIncarnation();
  shard.shard.max_bytes = MaxShardBytes();
  shard.clock = clock;
  CoordinationServer::Options coordination;
  coordination.coordinator.worker_timeout = worker_timeout;
  coordination.clock = clock;
  WorkerLinks links;
  links.shards.push_back(std::make_unique<ShardServer>(shard));
  links.coordination = std::make_unique<CoordinationServer>(coordination);
  return links;
}

Reporter NamingThisProcess(Reporter reporter) {
  return Reporter([reporter = std::move(reporter)](Reporter::Level level,
                                                   absl::string_view line) {
    reporter.Report(
        level, absl::StrReplaceAll(line, {{"/job:ps/task:0", "this process"}}));
  });
}

}  // namespace muster
