#include "tests/benchmark/data_plane/shards.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/process/stop_latch.h"
#include "common/rpc/credentials.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/protocol.h"
#include "common/tls/task_keys.h"
#include "ps_server/ps_task.h"
#include "ps_server/service/shard_server.h"
#include "tests/benchmark/data_plane/server_process.h"
#include "tests/testing/certificates.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "worker/client/link/shard_link.h"

namespace muster {
namespace {

constexpr char kInProcess[] = "in_process";
// Every shard is the one ps task of a cluster of its own: a figure needs no
// coordinator that knows them all, and no port before the task listens.
constexpr char kAnyPort[] = "127.0.0.1:0";

// Both null for plaintext.
struct Tls {
  std::unique_ptr<Certificates> certificates;
  std::unique_ptr<TaskKeys> keys;
};

// Ways to a ps task in another process.
const std::map<std::string, LinkChoice>& ProcessLinks() {
  static const auto& links = *new std::map<std::string, LinkChoice>{
      {"grpc", LinkChoice::kGrpc},
      {"shared_memory", LinkChoice::kSharedMemory},
      {"tcp", LinkChoice::kTcp},
  };
  return links;
}

class ProcessShards : public Shards {
 public:
  ProcessShards(Tls tls, std::vector<std::unique_ptr<ServerProcess>> servers,
                LinkChoice link)
      : tls_(std::move(tls)), servers_(std::move(servers)), link_(link) {}

  std::unique_ptr<ParameterLink> Connect(int shard) override {
    return MakeShardLink(
        {{absl::StrCat("/job:ps/task:", shard), servers_[shard]->address()},
         MakeTaskId(kPsJob, 0)},
        CredentialsOf(tls_.keys.get()), link_, Reporter(), SystemClock());
  }

  std::vector<pid_t> processes() const override {
    std::vector<pid_t> pids;
    for (const auto& server : servers_) pids.push_back(server->pid());
    return pids;
  }

 private:
  const Tls tls_;
  const std::vector<std::unique_ptr<ServerProcess>> servers_;
  const LinkChoice link_;
};

class OwnShards : public Shards {
 public:
  explicit OwnShards(int number) {
    for (int i = 0; i < number; ++i) {
      ShardServer::Options options;
      options.shard.incarnation = NewIncarnation();
      options.clock = SystemClock();
      servers_.push_back(std::make_unique<ShardServer>(options));
    }
  }

  // Several workers share a shard.
  std::unique_ptr<ParameterLink> Connect(int shard) override {
    return std::make_unique<ForwardingParameterLink>(servers_[shard].get());
  }

 private:
  std::vector<std::unique_ptr<ShardServer>> servers_;
};

ClusterDef OwnCluster(int workers) {
  ClusterDef cluster;
  JobDef* const ps = cluster.add_job();
  ps->set_name("ps");
  (*ps->mutable_tasks())[0] = kAnyPort;
  JobDef* const worker = cluster.add_job();
  worker->set_name("worker");
  for (int i = 0; i < workers; ++i) (*worker->mutable_tasks())[i] = "";
  return cluster;
}

absl::StatusOr<std::unique_ptr<Shards>> StartProcesses(
    const WorkloadOptions& options) {
  const auto link = ProcessLinks().find(options.link);
  if (link == ProcessLinks().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--link=", options.link, ": wanted ", kInProcess, ", ",
                     absl::StrJoin(ProcessLinks(), ", ",
                                   [](std::string* out, const auto& known) {
                                     out->append(known.first);
                                   })));
  }
  Tls tls;
  std::vector<std::string> flags = {
      "--serve=shard", absl::StrCat("--workers=", options.workers),
      absl::StrCat("--server_host=", options.server_host),
      absl::StrCat("--server_netns=", options.server_netns)};
  if (options.tls) {
    if (options.workers != 1) {
      return absl::InvalidArgumentError(
          "--tls: wanted --workers=1, who has the keys of worker 0");
    }
    ASSIGN_OR_RETURN(tls.certificates, Certificates::Make());
    ASSIGN_OR_RETURN(tls.keys, KeysOfTask(tls.certificates->folder(),
                                          MakeTaskId(kWorkerJob, 0), Reporter(),
                                          SystemClock()));
    flags.push_back(absl::StrCat("--tls_folder=", tls.certificates->folder()));
  }
  std::vector<std::unique_ptr<ServerProcess>> servers(options.shards);
  for (auto& server : servers) {
    ASSIGN_OR_RETURN(server, ServerProcess::Start(flags));
  }
  return std::make_unique<ProcessShards>(std::move(tls), std::move(servers),
                                         link->second);
}

// Moves this thread, and those that it starts, to the network namespace.
absl::Status EnterNetwork(const std::string& name) {
  const FileDescriptor space(
      open(absl::StrCat("/run/netns/", name).c_str(), O_RDONLY | O_CLOEXEC));
  if (space.valid() && setns(space.get(), CLONE_NEWNET) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("--server_netns=", name,
                          ": entering a network namespace of `ip netns list`"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shards>> StartShards(
    const WorkloadOptions& options) {
  if (options.link != kInProcess) return StartProcesses(options);
  if (options.tls) {
    return absl::InvalidArgumentError(
        "--tls: there is nothing between --link=in_process and its shards");
  }
  return std::make_unique<OwnShards>(options.shards);
}

absl::Status ServeShard(const WorkloadOptions& options) {
  if (!options.server_netns.empty()) {
    RETURN_IF_ERROR(EnterNetwork(options.server_netns));
  }
  StopLatch latch;
  std::unique_ptr<TaskKeys> keys;
  PsTaskOptions task_options;
  task_options.cluster = OwnCluster(options.workers);
  task_options.bind = absl::StrCat(options.server_host, ":0");
  task_options.allow_insecure_network = true;
  task_options.incarnation = NewIncarnation();
  task_options.clock = SystemClock();
  if (!options.tls_folder.empty()) {
    ASSIGN_OR_RETURN(keys, KeysOfTask(options.tls_folder, MakeTaskId(kPsJob, 0),
                                      Reporter(), SystemClock()));
    task_options.credentials = CredentialsOf(keys.get());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<PsTask> task,
                   PsTask::Start(std::move(task_options), &latch));
  ServeUntilInputEnds(absl::StrCat(options.server_host, ":", task->port()));
  return absl::OkStatus();
}

HelloRequest HelloTo(const Sender& sender) {
  HelloRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = sender;
  (*request.mutable_ps_addresses())[0] = kAnyPort;
  request.set_muster_version(std::string(kMusterVersion));
  return request;
}

}  // namespace muster
