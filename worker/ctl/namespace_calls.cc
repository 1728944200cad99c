#include "worker/ctl/namespace_calls.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "common/process/exit_code.h"
#include "common/process/thread_supply.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/connection_cause.h"
#include "common/rpc/credentials.h"
#include "common/rpc/deadline.h"
#include "common/rpc/peer_check.h"
#include "common/rpc/server/listen_address.h"
#include "common/rpc/status_conversion.h"
#include "common/tls/identity.h"
#include "grpcpp/client_context.h"

namespace muster {
namespace {

// A ps carries such a call out between two parts.
constexpr absl::Duration kTimeout = absl::Seconds(5);
// gRPC starts 6 for one ps, and TaskKeys one.
constexpr int kMostThreads = 8;

absl::Status OfPs(const std::string& name, const std::string& address,
                  const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status error = ToAbslStatus(status);
  const bool is_away =
      absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
  const std::string found = PeerCheck(address, SystemClock()).Explain(status);
  if (!found.empty()) {
    return absl::Status(is_away ? absl::StatusCode::kUnavailable : error.code(),
                        absl::StrCat(name, ": ", found));
  }
  if (!is_away) {
    return absl::Status(
        error.code(), absl::StrCat(name, ": ", EscapeForLog(error.message())));
  }
  return absl::UnavailableError(absl::StrCat(name, " does not answer (",
                                             ConnectionCause(error.message()),
                                             "); is it running?"));
}

// Calls `method` of a stub.
template <typename Ps, typename Stub, typename Method, typename Request,
          typename Reply>
absl::Status Call(const Ps& ps, Stub& stub, Method method,
                  const Request& request, Reply* reply) {
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(MonotonicClock().Now() + kTimeout));
  return OfPs(ps.name, ps.address, (stub.*method)(&context, request, reply));
}

// A line about the own keys.
void SayOfKeys(Reporter::Level level, absl::string_view line) {
  if (level == Reporter::kInfo) return;
  std::fputs(absl::StrCat("musterctl: ", line, "\n").c_str(), stderr);
}

// Null without a folder. An admin looks, too.
absl::StatusOr<std::unique_ptr<TaskKeys>> ReadKeys(
    const std::string& dir, NamespaceCalls::Purpose purpose) {
  if (dir.empty()) return nullptr;
  TaskKeys::Options options;
  options.dir = dir;
  options.clock = SystemClock();
  options.reporter = Reporter(&SayOfKeys);
  options.job = kAdminIdentity;
  const std::string viewer = absl::StrCat(dir, "/", kViewerIdentity, ".pem");
  if (purpose == NamespaceCalls::Purpose::kLook &&
      access(viewer.c_str(), F_OK) == 0) {
    options.job = kViewerIdentity;
  }
  return TaskKeys::Create(std::move(options));
}

}  // namespace

std::vector<Verb::Flag> NamespaceCalls::Flags() {
  return {{"cluster", "The cluster file of the ps tasks."},
          {"ps_hosts", "Their host:port, comma-separated, instead."},
          {"certs_dir",
           "Folder with ca.pem and the pair viewer, or admin, of `muster "
           "certs`: mutual TLS."},
          {"allow_insecure_network",
           "Talk to other machines without encryption.", /*is_switch=*/true}};
}

absl::StatusOr<NamespaceCalls> NamespaceCalls::Create(const VerbCall& call,
                                                      Purpose purpose) {
  ClusterOptions options;
  options.cluster_file = call.Flag("cluster");
  options.ps_hosts = call.Flag("ps_hosts");
  options.jobs = {kPsJob};
  if (options.cluster_file.empty() && options.ps_hosts.empty()) {
    return absl::InvalidArgumentError(
        "no ps tasks are given; give --cluster=FILE or --ps_hosts=HOST:PORT");
  }
  ASSIGN_OR_RETURN(const ResolvedCluster cluster, ResolveCluster(options));
  // Without its threads gRPC would wait for them for ever.
  RETURN_IF_ERROR(CheckThreads(kMostThreads));
  NamespaceCalls calls;
  ASSIGN_OR_RETURN(calls.keys_, ReadKeys(call.Flag("certs_dir"), purpose));
  const TaskCredentials credentials = CredentialsOf(calls.keys_.get());
  const bool trusted = credentials.proves_callers ||
                       call.Flag("allow_insecure_network") == "true";
  for (const auto& [index, address] : cluster.spec.tasks(kPsJob)) {
    RETURN_IF_ERROR(CheckConnectAddress(address, trusted));
    const auto channel =
        OpenChannel(address, credentials.channel_to(kPsJob, index));
    calls.ps_.push_back({absl::StrCat("/job:ps/task:", index, " at ", address),
                         address, ParameterService::NewStub(channel),
                         CoordinationService::NewStub(channel)});
  }
  return calls;
}

absl::StatusOr<std::vector<ListNamespacesReply>> NamespaceCalls::List() {
  std::vector<ListNamespacesReply> replies(ps_.size());
  for (size_t i = 0; i < ps_.size(); ++i) {
    RETURN_IF_ERROR(Call(ps_[i], *ps_[i].parameters,
                         &ParameterService::Stub::ListNamespaces,
                         ListNamespacesRequest(), &replies[i]));
  }
  return replies;
}

absl::StatusOr<JobState> NamespaceCalls::Job(const std::string& name) {
  JobStateRequest request;
  request.set_namespace_(name);
  JobState state;
  const absl::Status status =
      Call(ps_[0], *ps_[0].coordination,
           &CoordinationService::Stub::GetJobState, request, &state);
  // Somebody has come to its shards, and not registered yet.
  if (absl::IsFailedPrecondition(status)) {
    state.set_idle_s(-1);
    return state;
  }
  RETURN_IF_ERROR(status);
  return state;
}

absl::StatusOr<SteerReply> NamespaceCalls::Steer(const SteerRequest& request) {
  return AskFirst<SteerReply>(&CoordinationService::Stub::Steer, request);
}

absl::StatusOr<BeginProfileReply> NamespaceCalls::BeginProfile(
    const BeginProfileRequest& request) {
  return AskFirst<BeginProfileReply>(&CoordinationService::Stub::BeginProfile,
                                     request);
}

absl::StatusOr<GetProfileReply> NamespaceCalls::GetProfile(
    const GetProfileRequest& request) {
  return AskFirst<GetProfileReply>(&CoordinationService::Stub::GetProfile,
                                   request);
}

template <typename Reply, typename Method, typename Request>
absl::StatusOr<Reply> NamespaceCalls::AskFirst(Method method,
                                               const Request& request) {
  Reply reply;
  RETURN_IF_ERROR(Call(ps_[0], *ps_[0].coordination, method, request, &reply));
  return reply;
}

absl::StatusOr<ProfileReply> NamespaceCalls::Profile(
    size_t ps_task, const ProfileRequest& request) {
  ProfileReply reply;
  RETURN_IF_ERROR(Call(ps_[ps_task], *ps_[ps_task].parameters,
                       &ParameterService::Stub::Profile, request, &reply));
  return reply;
}

absl::Status IsNotThere(const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat("no ps task has ", QuotedNamespace(name),
                   "; musterctl namespace ls lists those that there are"));
}

absl::StatusOr<int64_t> NamespaceCalls::End(
    const EndNamespaceRequest& request) {
  EndNamespaceReply reply;
  const absl::Status job =
      Call(ps_[0], *ps_[0].coordination,
           &CoordinationService::Stub::EndNamespace, request, &reply);
  if (!job.ok() && !absl::IsNotFound(job)) return job;
  bool is_there = job.ok();
  int64_t freed = 0;
  for (Ps& ps : ps_) {
    reply.Clear();
    const absl::Status ended =
        Call(ps, *ps.parameters, &ParameterService::Stub::EndNamespace, request,
             &reply);
    if (absl::IsNotFound(ended)) continue;
    RETURN_IF_ERROR(ended);
    is_there = true;
    freed += reply.freed_bytes();
  }
  if (!is_there) return IsNotThere(request.namespace_());
  return freed;
}

absl::Status SayIfAway(const absl::Status& status, VerbResult* result) {
  if (!absl::IsUnavailable(status)) return status;
  absl::StrAppend(&result->error, "musterctl: ", status.message(), "\n");
  result->exit_code = kExitRetryable;
  return absl::OkStatus();
}

absl::Status EndNamespaceOf(const VerbCall& call, bool drop,
                            VerbResult* result) {
  EndNamespaceRequest request;
  request.set_namespace_(call.arguments[0]);
  request.set_drop(drop);
  request.set_force(call.Flag("force") == "true");
  RETURN_IF_ERROR(CheckNamespaceName("NAME", request.namespace_()));
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kSteer));
  const absl::StatusOr<int64_t> freed = calls.End(request);
  if (!freed.ok()) return SayIfAway(freed.status(), result);
  result->out =
      absl::StrCat(QuotedNamespace(request.namespace_()), " is ",
                   drop ? "dropped" : "reset", ": ", *freed, " bytes freed\n");
  return absl::OkStatus();
}

}  // namespace muster
