#ifndef WORKER_CTL_NAMESPACE_CALLS_H_
#define WORKER_CTL_NAMESPACE_CALLS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tls/task_keys.h"
#include "proto/coordination_service.grpc.pb.h"
#include "proto/parameter_service.grpc.pb.h"
#include "worker/ctl/verb.h"

namespace muster {

// An operator's calls about namespaces to the ps tasks of a running cluster.
// Errors of all calls: Unavailable if a ps does not answer, else what it
// refused with; both name it.
class NamespaceCalls {
 public:
  // The flags of a verb that makes them.
  static std::vector<Verb::Flag> Flags();

  // With --certs_dir: whether as its viewer (or, for want of one, admin), or as
  // its admin.
  enum class Purpose { kLook, kSteer };

  // The cluster of --cluster or --ps_hosts. Errors: InvalidArgument; those of
  // TaskKeys; Unauthenticated for another machine without --certs_dir or
  // --allow_insecure_network.
  static absl::StatusOr<NamespaceCalls> Create(const VerbCall& call,
                                               Purpose purpose);

  // By ps task.
  absl::StatusOr<std::vector<ListNamespacesReply>> List();
  // The namespace's job, as ps task 0 knows it; nothing known: INITIAL.
  absl::StatusOr<JobState> Job(const std::string& name);
  // Tells the job an operator's wish; the state from then. Errors besides: what
  // the job refused it with.
  absl::StatusOr<SteerReply> Steer(const SteerRequest& request);
  // Those of a profile; of ps task 0. Errors besides: what it refused it with.
  absl::StatusOr<BeginProfileReply> BeginProfile(
      const BeginProfileRequest& request);
  absl::StatusOr<GetProfileReply> GetProfile(const GetProfileRequest& request);
  absl::StatusOr<ProfileReply> Profile(size_t ps_task,
                                       const ProfileRequest& request);
  size_t num_ps() const { return ps_.size(); }
  // Ends it everywhere, its job first. Returns the bytes that were freed.
  // Errors besides: InvalidArgument if it was nowhere.
  absl::StatusOr<int64_t> End(const EndNamespaceRequest& request);

 private:
  struct Ps {
    // "/job:ps/task:1 at host:port".
    std::string name;
    std::string address;
    std::unique_ptr<ParameterService::Stub> parameters;
    std::unique_ptr<CoordinationService::Stub> coordination;
  };

  // Of ps task 0's coordinator.
  template <typename Reply, typename Method, typename Request>
  absl::StatusOr<Reply> AskFirst(Method method, const Request& request);

  // Null for plaintext. First: the others use it.
  std::unique_ptr<TaskKeys> keys_;
  std::vector<Ps> ps_;
};

// The verb's outcome: a ps that does not answer is worth another try
// (kExitRetryable), everything else is the verb's error.
absl::Status SayIfAway(const absl::Status& status, VerbResult* result);

// The error of a verb about a namespace that no ps task has.
absl::Status IsNotThere(const std::string& name);

// Carries out "namespace reset" or "namespace drop" NAME.
absl::Status EndNamespaceOf(const VerbCall& call, bool drop,
                            VerbResult* result);

}  // namespace muster

#endif  // WORKER_CTL_NAMESPACE_CALLS_H_
