#ifndef TESTS_WORKER_TASK_LOCAL_PS_TASKS_H_
#define TESTS_WORKER_TASK_LOCAL_PS_TASKS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "worker/client/link/shard_link.h"

namespace muster {

// Passes calls on to a server that outlives it.
class ForwardingLink : public Link {
 public:
  explicit ForwardingLink(Link* link) : link_(*link) {}
  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    link_.CallBytes(method, std::move(request), deadline, std::move(done));
  }

 private:
  Link& link_;
};

// The ps tasks of one job, in this process.
class LocalPsTasks {
 public:
  LocalPsTasks(int num_ps, int num_workers) {
    CoordinationServer::Options coordination;
    coordination.coordinator.expected_tasks = num_workers;
    coordination.clock = SystemClock();
    coordination_ = std::make_unique<CoordinationServer>(coordination);
    for (int i = 0; i < num_ps; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = i + 1;
      shard.shard.ps_index = i;
      shard.clock = SystemClock();
      shards_.push_back(std::make_unique<ShardServer>(shard));
    }
  }
  WorkerLinks MakeLinks() {
    WorkerLinks links;
    for (const auto& shard : shards_) {
      links.shards.push_back(
          std::make_unique<ForwardingParameterLink>(shard.get()));
    }
    links.coordination = std::make_unique<ForwardingLink>(coordination_.get());
    return links;
  }

 private:
  std::unique_ptr<CoordinationServer> coordination_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
};

}  // namespace muster

#endif  // TESTS_WORKER_TASK_LOCAL_PS_TASKS_H_
