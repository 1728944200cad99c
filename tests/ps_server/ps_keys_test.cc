// A ps whose callers have certificates: each cell of the table of rights, and
// what strangers and holders of other keys try, over real connections.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "common/rpc/call_table.h"
#include "common/rpc/job_watcher.h"
#include "common/rpc/link_choice.h"
#include "common/tls/task_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/ps_task.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/certificates.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/client.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/client/link/grpc_parameter_link.h"
#include "worker/client/link/shard_link.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kNotTheRole[] = "wanted one of";
constexpr char kNotTheSender[] = "wanted the task of its certificate";

// The keys of who has each role in a cluster of 1 ps and 2 workers.
const std::map<Role, std::pair<std::string, int>> kHolders = {
    {Role::kChief, {"worker", 0}},   {Role::kWorker, {"worker", 1}},
    {Role::kPs, {"ps", 0}},          {Role::kEvaluator, {"evaluator", 0}},
    {Role::kViewer, {"viewer", -1}}, {Role::kAdmin, {"admin", -1}},
};

// May be put forward.
class AheadClock : public MonotonicClock {
 public:
  absl::Time Now() const override {
    return MonotonicClock::Now() + absl::Hours(hours.load());
  }

  std::atomic<int> hours = 0;
};

class PsKeysTest : public testing::Test {
 protected:
  PsKeysTest() {
    auto certificates = Certificates::Make();
    EXPECT_THAT(certificates, IsOk());
    certificates_ = *std::move(certificates);
    ps_keys_ = KeysOf("ps", 0);
    ClusterDef cluster;
    AddJob(&cluster, "ps", {"localhost:1"});
    AddJob(&cluster, "worker", {"localhost:2", "localhost:3"});
    task_ = StartPs(cluster);
  }
  ~PsKeysTest() override { task_->Drain(); }

  std::unique_ptr<PsTask> StartPs(const ClusterDef& cluster) {
    PsTaskOptions options;
    options.cluster = cluster;
    options.bind = "127.0.0.1:0";
    options.incarnation = 1;
    options.clock = &clock_;
    options.credentials = ps_keys_->credentials();
    auto task = PsTask::Start(std::move(options), &latch_);
    EXPECT_THAT(task, IsOk());
    return *std::move(task);
  }
  static void AddJob(ClusterDef* cluster, const std::string& name,
                     const std::vector<std::string>& addresses) {
    JobDef* const job = cluster->add_job();
    job->set_name(name);
    for (size_t i = 0; i < addresses.size(); ++i) {
      (*job->mutable_tasks())[static_cast<int>(i)] = addresses[i];
    }
  }

  std::unique_ptr<TaskKeys> KeysOf(const std::string& job, int index) {
    TaskKeys::Options options;
    options.dir = certificates_->folder();
    options.job = job;
    options.index = index;
    options.clock = SystemClock();
    options.look_every = absl::Milliseconds(5);
    options.wall_time = [this] {
      return absl::Now() + absl::Hours(clock_.hours.load());
    };
    auto keys = TaskKeys::Create(std::move(options));
    EXPECT_THAT(keys, IsOk());
    return *std::move(keys);
  }
  PeerName Peer() const {
    return {"/job:ps/task:0", absl::StrCat("127.0.0.1:", task_->port())};
  }
  static absl::Time Soon() { return SystemClock()->Now() + absl::Seconds(30); }
  std::unique_ptr<ParameterLink> LinkOver(LinkChoice choice,
                                          const TaskKeys& keys) {
    return MakeShardLink({Peer(), MakeTaskId("ps", 0)}, keys.credentials(),
                         choice, said_.reporter(), SystemClock());
  }

  // A call with a request that is empty.
  absl::Status Ask(Link* link, const AnyMethod& method) {
    return AwaitReply<std::string>([&](ReplyCallback<std::string> done) {
             link->CallBytes(method, "", Soon(), std::move(done));
           })
        .status();
  }
  // One that is not.
  template <typename M>
  absl::Status Ask(Link* link, const M& method,
                   const typename M::Request& request) {
    return AwaitCall(*link, method, request, Soon()).status();
  }
  static Sender WorkerOf(int index) {
    return SenderOf(TaskKey("worker", index), /*incarnation=*/7);
  }

  // The four calls with tensors.
  absl::Status Load(ParameterLink* link, const Frame<LoadPart>& load) {
    return AwaitReply<LoadReply>([&](ReplyCallback<LoadReply> done) {
             link->Load(load, Soon(), std::move(done));
           })
        .status();
  }
  absl::Status Pull(ParameterLink* link, const PullRequest& pull) {
    return AwaitReply<Frame<PullReply>>(
               [&](ReplyCallback<Frame<PullReply>> done) {
                 link->Pull(pull, Soon(), std::move(done));
               })
        .status();
  }
  absl::Status Push(ParameterLink* link, const Frame<PushPart>& push) {
    return AwaitReply<Frame<PushReply>>(
               [&](ReplyCallback<Frame<PushReply>> done) {
                 link->Push(push, Soon(), std::move(done));
               })
        .status();
  }
  absl::Status ReadSnapshot(ParameterLink* link,
                            const ReadSnapshotRequest& read) {
    return AwaitReply<Frame<SnapshotPart>>(
               [&](ReplyCallback<Frame<SnapshotPart>> done) {
                 link->ReadSnapshot(read, Soon(), std::move(done));
               })
        .status();
  }

  // Of the ps and of all certificates.
  AheadClock clock_;
  // By the links of LinkOver.
  ReportedLines said_;
  StopLatch latch_;
  std::unique_ptr<Certificates> certificates_;
  std::unique_ptr<TaskKeys> ps_keys_;
  std::unique_ptr<PsTask> task_;
};

TEST_F(PsKeysTest, EachCellOfTheTable) {
  for (const auto& [role, holder] : kHolders) {
    const auto keys = KeysOf(holder.first, holder.second);
    GrpcCoordinationLink link(Peer(), keys->credentials().channel_to("ps", 0));
    for (const AnyMethod& method : kCallTable) {
      const absl::Status status = Ask(&link, method);
      const bool refused = absl::IsPermissionDenied(status) &&
                           absl::StrContains(status.message(), kNotTheRole);
      EXPECT_EQ(refused, !method.callers.Contains(role))
          << holder.first << " " << method.path << ": " << status;
      // It came so far.
      EXPECT_FALSE(absl::IsUnavailable(status)) << status;
    }
  }
}

TEST_F(PsKeysTest, NobodySpeaksForAnother) {
  const auto keys = KeysOf("worker", 1);
  GrpcCoordinationLink link(Peer(), keys->credentials().channel_to("ps", 0));
  const auto stolen = StatusIs(
      absl::StatusCode::kPermissionDenied,
      AllOf(HasSubstr(kNotTheSender), HasSubstr("/job:worker/task:0")));
  HelloRequest hello;
  *hello.mutable_sender() = WorkerOf(0);
  hello.set_takeover(1);
  EXPECT_THAT(Ask(&link, kHelloCall, hello), stolen);
  RegisterRequest registration;
  *registration.mutable_sender() = WorkerOf(0);
  registration.set_chief(true);
  EXPECT_THAT(Ask(&link, kRegisterCall, registration), stolen);
  StepRequest step;
  *step.mutable_sender() = WorkerOf(0);
  EXPECT_THAT(Ask(&link, kStepCall, step), stolen);
  FinishRequest finish;
  *finish.mutable_sender() = WorkerOf(0);
  finish.set_stop_job(true);
  EXPECT_THAT(Ask(&link, kFinishCall, finish), stolen);
  WatchRequest watch;
  *watch.mutable_sender() = SenderOf(TaskKey("ps", 0), 7);
  EXPECT_THAT(
      Ask(&link, kWatchCall, watch),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kNotTheSender)));
}

TEST_F(PsKeysTest, AWorkerReadsTheClock_AViewerHasItRecorded) {
  ProfileRequest begin;
  begin.set_action(ProfileRequest::BEGIN);
  const auto worker = KeysOf("worker", 1);
  GrpcCoordinationLink link(Peer(), worker->credentials().channel_to("ps", 0));
  EXPECT_THAT(Ask(&link, kProfileCall, ProfileRequest()), IsOk());
  EXPECT_THAT(
      Ask(&link, kProfileCall, begin),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kNotTheRole)));
  const auto viewer = KeysOf("viewer", -1);
  GrpcCoordinationLink other(Peer(), viewer->credentials().channel_to("ps", 0));
  EXPECT_THAT(Ask(&other, kProfileCall, begin), IsOk());
}

TEST_F(PsKeysTest, AWorkerStopsNoJobInItsOwnNameEither) {
  const auto keys = KeysOf("worker", 1);
  GrpcCoordinationLink link(Peer(), keys->credentials().channel_to("ps", 0));
  FinishRequest finish;
  *finish.mutable_sender() = WorkerOf(1);
  finish.set_stop_job(true);
  EXPECT_FALSE(Ask(&link, kFinishCall, finish).ok());
  RegisterRequest registration;
  registration.set_protocol_version(kProtocolVersion);
  *registration.mutable_sender() = WorkerOf(1);
  registration.set_chief(true);
  const absl::Status registered = Ask(&link, kRegisterCall, registration);
  finish.set_unsaved(true);
  EXPECT_FALSE(Ask(&link, kFinishCall, finish).ok()) << registered;
  const auto state = AwaitCall(link, kGetJobStateCall, {}, Soon());
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->phase(), INITIAL);
}

// Calls with tensors are read by other code than the rest.
TEST_F(PsKeysTest, ACallWithTensorsIsNoWayRoundTheTable) {
  const auto keys = KeysOf("worker", 1);
  for (const LinkChoice choice : {LinkChoice::kGrpc, LinkChoice::kTcp}) {
    const auto link = LinkOver(choice, *keys);
    Frame<LoadPart> load;
    *load.header.mutable_sender() = WorkerOf(1);
    EXPECT_THAT(
        Load(link.get(), load),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kNotTheRole)));
    ReadSnapshotRequest read;
    *read.mutable_sender() = WorkerOf(1);
    EXPECT_THAT(
        ReadSnapshot(link.get(), read),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kNotTheRole)));
    Frame<PushPart> push;
    *push.header.mutable_sender() = WorkerOf(0);
    EXPECT_THAT(Push(link.get(), push),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr(kNotTheSender)));
  }
  EXPECT_THAT(said_.lines(),
              ElementsAre("I link to /job:ps/task:0: gRPC",
                          "I link to /job:ps/task:0: TCP with TLS 1.3"));
}

// A holder who gets no offer has no connection to make them over, either.
TEST_F(PsKeysTest, EachCellOfTheTableOverTcp) {
  for (const auto& [role, holder] : kHolders) {
    said_.Clear();
    const auto keys = KeysOf(holder.first, holder.second);
    const auto link = LinkOver(LinkChoice::kTcp, *keys);
    const std::pair<AnyMethod, absl::Status> calls[] = {
        {kLoadCall, Load(link.get(), {})},
        {kPullCall, Pull(link.get(), {})},
        {kPushCall, Push(link.get(), {})},
        {kReadSnapshotCall, ReadSnapshot(link.get(), {})}};
    for (const auto& [method, status] : calls) {
      EXPECT_EQ(absl::StrContains(status.message(), kNotTheRole),
                !method.callers.Contains(role))
          << holder.first << " " << method.path << ": " << status;
      EXPECT_FALSE(absl::IsUnavailable(status)) << status;
    }
    EXPECT_THAT(said_.lines(),
                SizeIs(kTcpOfferCall.callers.Contains(role) ? 1 : 0));
  }
}

// Without keys, or with another cluster's, no call comes so far that anything
// of it is read.
TEST_F(PsKeysTest, AStrangerMakesNoCall) {
  auto others = Certificates::Make();
  ASSERT_THAT(others, IsOk());
  std::swap(certificates_, *others);
  const auto keys = KeysOf("worker", 0);
  for (const auto& credentials : {InsecureCredentials().channel_to("ps", 0),
                                  keys->credentials().channel_to("ps", 0)}) {
    GrpcCoordinationLink link(Peer(), credentials);
    for (const AnyMethod& method :
         {AnyMethod(kHelloCall), AnyMethod(kDefineCall), AnyMethod(kPullCall),
          AnyMethod(kPushCall), AnyMethod(kReadSnapshotCall),
          AnyMethod(kBeginSnapshotCall), AnyMethod(kRegisterCall),
          AnyMethod(kStepCall), AnyMethod(kFinishCall),
          AnyMethod(kRequestSaveCall), AnyMethod(kGetJobStateCall),
          AnyMethod(kOfferCall)}) {
      EXPECT_THAT(Ask(&link, method), StatusIs(absl::StatusCode::kUnavailable));
    }
  }
  std::swap(certificates_, *others);
  const auto viewer = KeysOf("viewer", -1);
  GrpcCoordinationLink link(Peer(), viewer->credentials().channel_to("ps", 0));
  const auto state = AwaitCall(link, kGetJobStateCall, {}, Soon());
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->workers_size(), 0);
  EXPECT_EQ(state->phase(), INITIAL);
  const auto shard = AwaitCall(link, kStateCall, {}, Soon());
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ(shard->phase(), EMPTY);
}

// ---- Certificates that end ----------------------------------------------

constexpr char kHasEnded[] = "has ended since it connected";

class PsKeysEndTest : public PsKeysTest {
 protected:
  // The drain has a deadline.
  ~PsKeysEndTest() override { clock_.hours = 0; }

  // Keys that end in half an hour; a ps without workers ends after two.
  std::unique_ptr<TaskKeys> ShortKeysOf(const std::string& job, int index) {
    const std::string stem = absl::StrCat(job, "-", index);
    Certificates::Leaf leaf = certificates_->LeafOf(stem);
    leaf.not_after = absl::Now() + absl::Minutes(30);
    EXPECT_THAT(certificates_->Issue(stem, leaf), IsOk());
    return KeysOf(job, index);
  }
  // Calls until an answer comes that no connection of the old certificate
  // gives; but for `old_answers`, which may still be on their way.
  void ExpectSoonLetIn(const std::function<absl::Status()>& call,
                       int old_answers) {
    absl::Status status = absl::UnavailableError("");
    while (absl::IsUnavailable(status)) {
      status = call();
      if (!absl::StrContains(status.message(), kHasEnded)) continue;
      ASSERT_GE(--old_answers, 0) << status;
    }
  }
};

TEST_F(PsKeysEndTest, ARenewedCertificateIsShownOnEveryWay) {
  const auto keys = ShortKeysOf("worker", 1);
  const auto credentials = keys->credentials().channel_to("ps", 0);
  GrpcCoordinationLink coordination(Peer(), credentials);
  GrpcParameterLink parameters(Peer(), credentials);
  const auto tcp = LinkOver(LinkChoice::kTcp, *keys);
  PullRequest pull;
  *pull.mutable_sender() = WorkerOf(1);
  const std::function<absl::Status()> calls[] = {
      [&] { return Ask(&coordination, kGetJobStateCall, {}); },
      [&] { return Ask(&parameters, kStateCall, {}); },
      [&] { return Pull(&parameters, pull); },
      [&] { return Pull(tcp.get(), pull); }};
  for (const auto& call : calls) EXPECT_FALSE(absl::IsUnavailable(call()));
  clock_.hours = 1;
  for (const auto& call : calls) {
    EXPECT_THAT(call(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(kHasEnded)));
  }
  // Half of it is not taken.
  const std::string old_key = certificates_->Read("worker-1.key");
  ASSERT_THAT(certificates_->Issue("worker-1"), IsOk());
  const std::string key = certificates_->Read("worker-1.key");
  ASSERT_THAT(certificates_->Write("worker-1.key", old_key), IsOk());
  for (const auto& call : calls) {
    EXPECT_THAT(call(), StatusIs(absl::StatusCode::kUnavailable));
  }
  ASSERT_THAT(certificates_->Write("worker-1.key", key), IsOk());
  // A connection may just be ending.
  for (const auto& call : calls) ExpectSoonLetIn(call, /*old_answers=*/1);
}

TEST_F(PsKeysEndTest, AWatcherOfTheJobShowsARenewedCertificate) {
  const auto keys = ShortKeysOf("evaluator", 0);
  absl::Notification let_in;
  absl::Notification has_ended;
  StopLatch latch;
  JobWatcher::Options options;
  options.address = Peer().address;
  options.credentials = keys->credentials().channel_to("ps", 0);
  options.sender = SenderOf(TaskKey("evaluator", 0), /*incarnation=*/7);
  options.max_wait = absl::Seconds(30);
  options.clock = SystemClock();
  options.latch = &latch;
  options.awaited = [&](const JobState& /*state*/) {
    if (let_in.HasBeenNotified()) {
      latch.Stop({0, "let in again"});
    } else {
      let_in.Notify();
      has_ended.WaitForNotification();
    }
    return std::string();
  };
  const JobWatcher watcher(std::move(options));
  let_in.WaitForNotification();
  clock_.hours = 1;
  has_ended.Notify();
  ASSERT_THAT(certificates_->Issue("evaluator-0"), IsOk());
  EXPECT_EQ(latch.Wait().exit_code, 0);
}

// A program of one's own, which is a worker like others.
TEST_F(PsKeysTest, TheClientLibraryTakesAFolder) {
  // Without a cluster there are no addresses to compare.
  const std::unique_ptr<PsTask> ps = StartPs({});
  Client::Options options;
  options.ps_addresses = {absl::StrCat("127.0.0.1:", ps->port())};
  options.certs_dir = certificates_->folder();
  options.optimizer.set_name("sgd");
  Attr* const rate = options.optimizer.add_attr();
  rate->set_name("learning_rate");
  rate->set_f(1);
  const std::vector<Client::Tensor> tensors = {{"w", {2}}};
  const std::vector<float> start = {1, 2};
  std::vector<float> found(2);
  const auto chief = Client::Connect(options, tensors);
  ASSERT_THAT(chief, IsOk());
  ASSERT_THAT((*chief)->Initialize({start}), IsOk());
  ASSERT_THAT((*chief)->Pull({absl::MakeSpan(found)}), IsOk());
  EXPECT_EQ(found, start);
  options.worker_index = 1;
  const auto worker = Client::Connect(options, tensors);
  ASSERT_THAT(worker, IsOk());
  EXPECT_THAT(
      (*worker)->Initialize({start}),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kNotTheRole)));
  EXPECT_THAT((*worker)->WaitForOthersToInitialize(), IsOk());
  options.worker_index = 9;
  EXPECT_THAT(Client::Connect(options, tensors),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker-9.pem")));
}

// A ps asks ps task 0, in its own process, without a connection.
TEST_F(PsKeysTest, ThePsMayAskItself) {
  const auto keys = KeysOf("worker", 0);
  GrpcCoordinationLink link(Peer(), keys->credentials().channel_to("ps", 0));
  RegisterRequest registration;
  registration.set_protocol_version(kProtocolVersion);
  *registration.mutable_sender() = WorkerOf(0);
  registration.set_chief(true);
  ASSERT_THAT(Ask(&link, kRegisterCall, registration), IsOk());
  BeginEpochRequest begin;
  *begin.mutable_sender() = WorkerOf(0);
  const auto begun = AwaitCall(link, kBeginEpochCall, begin, Soon());
  ASSERT_THAT(begun, IsOk());
  CommitEpochRequest commit;
  *commit.mutable_sender() = WorkerOf(0);
  commit.set_model_epoch(begun->model_epoch());
  commit.mutable_stop()->set_steps(1000);
  commit.set_saves(true);
  (*commit.mutable_ps_incarnations())[0] = 1;
  ASSERT_THAT(Ask(&link, kCommitEpochCall, commit), IsOk());
  // It wants the chief to save.
  std::atomic<bool> refused = false;
  std::thread ps([&] {
    task_->SaveBeforeEnd();
    refused = true;
  });
  JobState state;
  while (state.save_requests() == 0 && !refused) {
    state = AwaitCall(link, kGetJobStateCall, {}, Soon()).value();
  }
  EXPECT_EQ(state.save_requests(), 1);
  ReportSaveRequest report;
  *report.mutable_sender() = WorkerOf(0);
  report.set_save_request(state.save_requests());
  EXPECT_THAT(Ask(&link, kReportSaveCall, report), IsOk());
  ps.join();
}

}  // namespace
}  // namespace muster
