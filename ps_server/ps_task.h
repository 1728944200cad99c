#ifndef PS_SERVER_PS_TASK_H_
#define PS_SERVER_PS_TASK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "common/rpc/buffer_quota.h"
#include "common/rpc/credentials.h"
#include "common/rpc/job_watcher.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/server/server_listener.h"
#include "common/rpc/server/unknown_calls.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/cluster.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/http/ps_http.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/save_asker.h"
#include "ps_server/service/shard_server.h"
#include "ps_server/service/shared_memory_listener.h"
#include "ps_server/service/tcp_listener.h"

namespace muster {

struct PsTaskOptions {
  // Checked; holds this task.
  ClusterDef cluster;
  int32_t task_index = 0;
  // The address to listen on instead of the own one of the ClusterSpec; "" for
  // that.
  std::string bind;
  bool allow_insecure_network = false;
  // Where people and Prometheus look, "host:port"; "" for nowhere.
  std::string http_address;
  // The credentials of its server, and of its calls to ps task 0.
  TaskCredentials credentials = InsecureCredentials();
  // Offer what carries tensors beside gRPC: shared memory to workers of this
  // machine, and TCP, as far as they can be had; one of them (else it is an
  // error); or neither.
  LinkChoice link = LinkChoice::kAuto;
  // Go on when the job is done, and serve named namespaces: at most so many,
  // each with at most so many bytes.
  bool keep_serving = false;
  size_t max_namespaces = 64;
  int64_t max_namespace_bytes = std::numeric_limits<int64_t>::max();
  absl::Duration worker_timeout = absl::Seconds(30);
  // The longest absence of ps task 0 (other tasks) or of all workers, and the
  // longest wait of a job's end for a lost chief that has it still to save
  // (task 0).
  absl::Duration max_wait = absl::Hours(2);
  // After max_wait without any, unless it keeps serving. A task whose process
  // has a worker ends with that.
  bool ends_without_workers = true;
  // The time for which a taken port is tried again.
  absl::Duration port_wait = absl::Seconds(10);
  // Random, not 0.
  uint64_t incarnation = 0;
  // Parameters and slots together, with what is kept beside them
  // (ShardOptions).
  int64_t max_shard_bytes = int64_t{64} << 30;
  // The most bytes of pushed parts that wait to be applied.
  int64_t push_budget_bytes = int64_t{256} << 20;
  // Threads that share the work of applying a large part.
  int apply_threads = 1;
  // Outlives the task.
  const Clock* clock = nullptr;
};

// The life of one ps process: listens, serves its shard (task 0 also the
// coordinator), and ends when the job is done, a signal comes or ps task 0 is
// gone. In a process of its own, or beside the worker of an all-reduce.
// README.md has the states. Health is SERVING from Seal to the drain.
class PsTask {
 public:
  // Listens. `latch` outlives the task; it is stopped when the job is done.
  // Errors: Unauthenticated for a network that was not allowed; Unavailable
  // for a port that stayed taken; InvalidArgument for an address that is not
  // this machine's; Cancelled if the latch was stopped meanwhile.
  static absl::StatusOr<std::unique_ptr<PsTask>> Start(PsTaskOptions options,
                                                       StopLatch* latch);
  ~PsTask();

  PsTask(const PsTask&) = delete;
  PsTask& operator=(const PsTask&) = delete;

  // The port that it listens on.
  int port() const { return port_; }
  // That of HTTP; 0 if it is not served.
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }

  // Serves until the latch is stopped, and ends as README.md says. Returns the
  // exit code.
  int Run();

  // After a signal, before Drain: stops being ready and has the chief save; if
  // the job is done, task 0 waits until the other ps tasks know. Takes at most
  // 6 s, or longer while it saves. Returns whether the job is done.
  bool SaveBeforeEnd();

  // Stops being ready, finishes what is in flight, answers who waits, prints
  // the account. Repeatable.
  void Drain();

 private:
  PsTask(PsTaskOptions options, StopLatch* latch);

  // Errors: none of shared memory, unless it is required.
  absl::Status OfferSharedMemory();
  // Likewise.
  absl::Status OfferTcp();
  absl::Status Listen(const std::string& address);
  // One try; null if gRPC refused.
  std::unique_ptr<grpc::Server> TryServe(ServerListener* listener);
  absl::Status ServeHttp();
  // What is offered beside gRPC.
  void RegisterLinks(ServerListener* listener, grpc::ServerBuilder* builder);
  // The tasks that this one waits for, in words; "" for none.
  std::string DescribeAwaited(const std::string& space, const JobState& state);

  void OnShardPhase(const std::string& space, const ShardState& state,
                    const std::string& optimizer);
  void OnJobPhase(const std::string& space, const JobState& state);
  // Has the chiefs of all namespaces save; whether each has, or its job is
  // done.
  bool AwaitSaves();
  void OnJobEnd(const JobState& state);
  // Tells the health service whether this task is ready.
  void PublishHealth();
  // Not ready from here on.
  void StopBeingReady();
  // This ps, as it speaks to a namespace's coordinator.
  Sender SelfIn(const std::string& space) const;
  void PrintAccount() const;

  const PsTaskOptions options_;
  StopLatch* const latch_;
  const std::vector<TaskKey> training_tasks_;
  // The workers for which the links have room.
  const int num_workers_;
  // Stopped when every ps task knows that the job is done.
  StopLatch end_is_known_;
  const Entrance entrance_;
  ShardServer shard_;
  // The end of the job, once it has one; used on the coordinator's thread.
  StopReason end_ = {0, "the job is done"};
  // Only on task 0.
  std::unique_ptr<CoordinationServer> coordination_;
  // Null if none is offered.
  std::unique_ptr<SharedMemoryListener> shared_memory_;
  std::unique_ptr<TcpListener> tcp_;
  std::unique_ptr<grpc::Service> parameter_service_;
  std::unique_ptr<grpc::Service> coordination_service_;
  std::unique_ptr<grpc::Service> shared_memory_service_;
  std::unique_ptr<grpc::Service> tcp_service_;
  std::unique_ptr<UnknownCalls> unknown_calls_;
  // Only on other tasks.
  std::unique_ptr<JobWatcher> watcher_;
  int port_ = 0;

  absl::Mutex mu_;
  // The namespaces whose model is READY here, and those that have any.
  std::set<std::string> ready_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> loaded_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // The health service of server_, while it serves; else null.
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(mu_) = nullptr;

  // Used by Start, SaveBeforeEnd and Drain only.
  std::unique_ptr<BufferQuota> buffers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerListener> listener_;
  // Null if it is not wanted.
  std::unique_ptr<PsHttp> http_;
  // One a namespace.
  std::vector<std::unique_ptr<SaveAsker>> askers_;
  bool drained_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_PS_TASK_H_
