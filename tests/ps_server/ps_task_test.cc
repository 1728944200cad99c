// A ps process's inside over real gRPC, spoken to with generated stubs: a peer
// in any language sees frames as ordinary messages.
#include "ps_server/ps_task.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/job_watcher.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/coordination_service.grpc.pb.h"
#include "proto/parameter_service.grpc.pb.h"
#include "proto/shared_memory_service.grpc.pb.h"
#include "proto/tcp_link_service.grpc.pb.h"
#include "spdlog/sinks/ringbuffer_sink.h"
#include "spdlog/spdlog.h"
#include "tests/ps_server/service/raw_tcp_worker.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// For what comes soon, however busy the machine is.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Keeps what this process logs, beside where it goes. To be made before and
// gone after every thread that logs.
class LogKeeper {
 public:
  LogKeeper() : usual_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "", spdlog::sinks_init_list{usual_->sinks().front(), sink_}));
  }
  ~LogKeeper() { spdlog::set_default_logger(usual_); }
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;

  // The last hundred of them.
  std::vector<std::string> lines() const { return sink_->last_formatted(); }

 private:
  const std::shared_ptr<spdlog::logger> usual_;
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
};

class PsTaskTest : public testing::Test {
 protected:
  PsTaskTest() { StartTask(Options()); }

  void StartTask(const PsTaskOptions& options) {
    absl::StatusOr<std::unique_ptr<PsTask>> task =
        PsTask::Start(options, &latch_);
    ASSERT_THAT(task, IsOk());
    task_ = *std::move(task);
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", task_->port()),
                                   grpc::InsecureChannelCredentials());
    parameters_ = ParameterService::NewStub(channel_);
    coordination_ = CoordinationService::NewStub(channel_);
  }

  PsTaskOptions Options() {
    PsTaskOptions options;
    JobDef* const ps = options.cluster.add_job();
    ps->set_name("ps");
    (*ps->mutable_tasks())[0] = "localhost:1";
    options.bind = "127.0.0.1:0";
    options.incarnation = kPsIncarnation;
    options.clock = &clock_;
    return options;
  }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(20));
    return context;
  }

  // Hello, Define, Load, Seal of "w" [3] = 1 2 3.
  void MakeReady() {
    HelloRequest hello = MakeHello(chief_);
    (*hello.mutable_ps_addresses())[0] = "localhost:1";
    HelloReply hello_reply;
    ASSERT_TRUE(parameters_->Hello(Context().get(), hello, &hello_reply).ok());
    EXPECT_EQ(hello_reply.ps_incarnation(), kPsIncarnation);
    DefineReply define_reply;
    ASSERT_TRUE(parameters_
                    ->Define(Context().get(),
                             MakeDefine(chief_, {MakeTensor("w", {3})}),
                             &define_reply)
                    .ok());
    Frame<LoadPart> load = MakeLoad(chief_, {MakeSlice("w", 0, 3)}, {});
    load.header.set_data(std::string(BytesOf<float>({1, 2, 3})));
    LoadReply load_reply;
    ASSERT_TRUE(
        parameters_->Load(Context().get(), load.header, &load_reply).ok());
    SealReply seal_reply;
    ASSERT_TRUE(
        parameters_->Seal(Context().get(), MakeSeal(chief_), &seal_reply).ok());
  }

  void RegisterChief() {
    RegisterRequest registration;
    registration.set_protocol_version(kProtocolVersion);
    *registration.mutable_sender() = chief_;
    registration.set_chief(true);
    RegisterReply registered;
    ASSERT_TRUE(
        coordination_->Register(Context().get(), registration, &registered)
            .ok());
  }

  // The job runs on this ps.
  void CommitModel(bool saves = false) {
    BeginEpochRequest begin;
    *begin.mutable_sender() = chief_;
    BeginEpochReply begun;
    ASSERT_TRUE(coordination_->BeginEpoch(Context().get(), begin, &begun).ok());
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(begun.model_epoch());
    commit.mutable_stop()->set_steps(1000);
    commit.set_saves(saves);
    (*commit.mutable_ps_incarnations())[0] = kPsIncarnation;
    CommitEpochReply committed;
    ASSERT_TRUE(
        coordination_->CommitEpoch(Context().get(), commit, &committed).ok());
  }

  // Waits for a request to save, and reports it as done.
  void SaveAsChief() {
    WatchRequest watch;
    *watch.mutable_sender() = chief_;
    watch.set_max_wait_ms(1000);
    JobState state;
    while (state.save_requests() == 0) {
      ASSERT_TRUE(coordination_->Watch(Context().get(), watch, &state).ok());
      watch.set_state_version(state.state_version());
    }
    ReportSaveRequest report;
    *report.mutable_sender() = chief_;
    report.set_save_request(state.save_requests());
    ReportSaveReply reported;
    ASSERT_TRUE(
        coordination_->ReportSave(Context().get(), report, &reported).ok());
  }

  // grpc.health.v1: 1 is SERVING, 2 is not. The request and reply are small
  // enough to write by hand.
  int Health() {
    grpc::GenericStub stub(channel_);
    auto context = Context();
    grpc::CompletionQueue queue;
    const grpc::Slice empty;
    const grpc::ByteBuffer request(&empty, 1);
    grpc::ByteBuffer reply;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(
        context.get(), "/grpc.health.v1.Health/Check", request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    grpc::Slice bytes;
    if (!status.ok() || !reply.TrySingleSlice(&bytes).ok()) return -1;
    return bytes.size() == 2 ? bytes.begin()[1] : 0;
  }

  LogKeeper log_;
  MonotonicClock clock_;
  StopLatch latch_;
  const Sender chief_ = MakeSender(0, 11);
  std::unique_ptr<PsTask> task_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ParameterService::Stub> parameters_;
  std::unique_ptr<CoordinationService::Stub> coordination_;
};

TEST_F(PsTaskTest, ServesFramesAsOrdinaryMessages) {
  MakeReady();
  Frame<PushPart> push = MakePush(chief_, 1, {MakeSlice("w", 0, 3)}, {});
  push.header.set_data(std::string(BytesOf<float>({1, 1, 1})));
  PushReply push_reply;
  ASSERT_TRUE(
      parameters_->Push(Context().get(), push.header, &push_reply).ok());
  ASSERT_TRUE(
      parameters_->Push(Context().get(), push.header, &push_reply).ok());
  EXPECT_TRUE(push_reply.duplicate());

  PullReply pull_reply;
  ASSERT_TRUE(parameters_
                  ->Pull(Context().get(),
                         MakePull(chief_, {MakeSlice("w", 0, 3)}), &pull_reply)
                  .ok());
  EXPECT_EQ(pull_reply.version(), 1);
  EXPECT_THAT(ValuesOf<float>(absl::Cord(pull_reply.data())),
              ElementsAre(0, 1, 2));
  ShardState state;
  ASSERT_TRUE(parameters_->State(Context().get(), {}, &state).ok());
  EXPECT_EQ(state.duplicate_parts(), 1);
}

// An offer over gRPC is for a connection to the same port.
TEST_F(PsTaskTest, ServesTensorsOverTcp_UntilTheDrain) {
  MakeReady();
  TcpOffer offer;
  ASSERT_TRUE(TcpLinkService::NewStub(channel_)
                  ->Offer(Context().get(), {}, &offer)
                  .ok());
  RawTcpWorker worker(ConnectToLoopback(task_->port()));
  ASSERT_TRUE(worker.Greet(offer.token()));
  ASSERT_THAT(worker.AwaitStatus(), IsOk());
  ASSERT_TRUE(worker.Send(
      1, DataMethod::kPull,
      MakePull(chief_, {MakeSlice("w", 0, 3)}).SerializeAsString()));
  EXPECT_EQ(worker.Await().value().data,
            std::string(BytesOf<float>({1, 2, 3})));
  task_->Drain();
  EXPECT_FALSE(worker.Await().has_value());
}

TEST_F(PsTaskTest, OffersWhatLinkSays) {
  struct Case {
    LinkChoice link;
    bool offers_tcp;
    bool offers_memory;
  };
  for (const Case& one : {Case{LinkChoice::kAuto, true, true},
                          Case{LinkChoice::kTcp, true, false},
                          Case{LinkChoice::kSharedMemory, false, true},
                          Case{LinkChoice::kGrpc, false, false}}) {
    PsTaskOptions options = Options();
    options.link = one.link;
    StartTask(options);
    TcpOffer tcp;
    EXPECT_EQ(TcpLinkService::NewStub(channel_)
                  ->Offer(Context().get(), {}, &tcp)
                  .ok(),
              one.offers_tcp);
    SharedMemoryOffer memory;
    EXPECT_EQ(SharedMemoryService::NewStub(channel_)
                  ->Offer(Context().get(), {}, &memory)
                  .ok(),
              one.offers_memory);
  }
}

TEST_F(PsTaskTest, ErrorsArriveWithCodeAndMessage) {
  PullReply reply;
  const grpc::Status status =
      parameters_->Pull(Context().get(), MakePull(chief_, {}), &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), testing::StartsWith("fenced: "));
}

TEST_F(PsTaskTest, HealthIsServingFromSealToDrain) {
  EXPECT_EQ(Health(), 2);
  MakeReady();
  EXPECT_EQ(Health(), 1);
}

TEST_F(PsTaskTest, WithoutAModelItEndsWithoutASave) {
  EXPECT_FALSE(task_->SaveBeforeEnd());
  task_->Drain();
}

TEST_F(PsTaskTest, AfterTheEndOfTheJobThereIsNothingToSave) {
  RegisterChief();
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_stop_job(true);
  FinishReply finished;
  ASSERT_TRUE(coordination_->Finish(Context().get(), finish, &finished).ok());
  EXPECT_TRUE(task_->SaveBeforeEnd());
}

TEST_F(PsTaskTest, HasTheChiefSaveBeforeItEnds) {
  RegisterChief();
  CommitModel();
  std::thread chief([this] { SaveAsChief(); });
  EXPECT_FALSE(task_->SaveBeforeEnd());
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("chief has saved the model")));
  chief.join();
  EXPECT_EQ(Health(), 2);
}

TEST_F(PsTaskTest, StopsWhenTheJobIsDone) {
  RegisterChief();
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_reason("interrupted");
  finish.set_stop_job(true);
  FinishReply finished;
  ASSERT_TRUE(coordination_->Finish(Context().get(), finish, &finished).ok());
  EXPECT_EQ(finished.state().phase(), DONE);
  EXPECT_EQ(latch_.Wait().exit_code, 0);
}

TEST_F(PsTaskTest, ATakenPortIsAnErrorThatNamesIt) {
  PsTaskOptions options = Options();
  options.bind = absl::StrCat("127.0.0.1:", task_->port());
  options.port_wait = absl::Milliseconds(300);
  EXPECT_THAT(
      PsTask::Start(options, &latch_),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(options.bind)));
}

TEST_F(PsTaskTest, RefusesANetworkThatWasNotAllowed) {
  PsTaskOptions options = Options();
  options.bind = "0.0.0.0:0";
  EXPECT_THAT(PsTask::Start(options, &latch_),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("--allow_insecure_network")));
}

TEST_F(PsTaskTest, AnotherPsFollowsTaskZeroToTheEnd) {
  PsTaskOptions options = Options();
  const std::string zero = absl::StrCat("127.0.0.1:", task_->port());
  (*options.cluster.mutable_job(0)->mutable_tasks())[0] = zero;
  (*options.cluster.mutable_job(0)->mutable_tasks())[1] = "localhost:2";
  options.task_index = 1;
  StopLatch latch;
  const auto other = PsTask::Start(options, &latch);
  ASSERT_THAT(other, IsOk());
  RegisterChief();
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_stop_job(true);
  FinishReply finished;
  ASSERT_TRUE(coordination_->Finish(Context().get(), finish, &finished).ok());
  const std::optional<StopReason> reason = latch.WaitFor(kPatience);
  ASSERT_TRUE(reason.has_value()) << "it does not end";
  EXPECT_EQ(reason->exit_code, 0);
}

// Neither the one that knows it nor one that it tells.
TEST_F(PsTaskTest, AJobThatEndedUnsavedIsASuccessForNoPs) {
  PsTaskOptions options = Options();
  options.worker_timeout = absl::Seconds(2);
  StartTask(options);
  const std::string zero = absl::StrCat("127.0.0.1:", task_->port());
  (*options.cluster.mutable_job(0)->mutable_tasks())[0] = zero;
  (*options.cluster.mutable_job(0)->mutable_tasks())[1] = "localhost:2";
  options.task_index = 1;
  StopLatch latch;
  const auto other = PsTask::Start(options, &latch);
  ASSERT_THAT(other, IsOk());
  RegisterChief();
  CommitModel(/*saves=*/true);
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_stop_job(true);
  finish.set_unsaved(true);
  FinishReply finished;
  ASSERT_TRUE(coordination_->Finish(Context().get(), finish, &finished).ok());
  for (StopLatch* const of_ps : {&latch_, &latch}) {
    const std::optional<StopReason> reason = of_ps->WaitFor(kPatience);
    ASSERT_TRUE(reason.has_value());
    EXPECT_EQ(reason->exit_code, 138);
    EXPECT_THAT(reason->text, HasSubstr("without its last save"));
  }
}

TEST_F(PsTaskTest, RefusesAWorkerThatItsClusterDoesNotList) {
  PsTaskOptions options = Options();
  JobDef* const workers = options.cluster.add_job();
  workers->set_name("worker");
  (*workers->mutable_tasks())[0] = "localhost:2";
  StartTask(options);
  RegisterRequest registration;
  registration.set_protocol_version(kProtocolVersion);
  *registration.mutable_sender() = MakeSender(77, 1);
  RegisterReply registered;
  const grpc::Status status =
      coordination_->Register(Context().get(), registration, &registered);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("does not list /job:worker/task:77"));
}

TEST_F(PsTaskTest, WhoWatchesTheJobSaysForWhomItWaits) {
  ReportedLines lines;
  StopLatch latch;
  JobWatcher::Options watch;
  watch.address = absl::StrCat("127.0.0.1:", task_->port());
  *watch.sender.mutable_task() = MakeSender(1, 1, "ps").task();
  watch.awaited = [](const JobState& state) {
    return state.workers_size() == 0 ? "the chief" : "";
  };
  watch.reporter = lines.reporter();
  watch.clock = &clock_;
  watch.latch = &latch;
  {
    const JobWatcher watcher(watch);
    lines.Await(1);
    RegisterChief();
    lines.Await(2);
  }
  EXPECT_THAT(lines.lines(),
              ElementsAre(StartsWith("I waiting for the chief; "),
                          "I no longer waiting"));
}

TEST_F(PsTaskTest, AnotherPsEndsWhenTaskZeroStaysAway) {
  PsTaskOptions options = Options();
  (*options.cluster.mutable_job(0)->mutable_tasks())[0] =
      absl::StrCat("127.0.0.1:", task_->port());
  (*options.cluster.mutable_job(0)->mutable_tasks())[1] = "localhost:2";
  options.task_index = 1;
  options.max_wait = absl::Milliseconds(300);
  task_.reset();
  StopLatch latch;
  const auto other = PsTask::Start(options, &latch);
  ASSERT_THAT(other, IsOk());
  const std::optional<StopReason> reason = latch.WaitFor(kPatience);
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->exit_code, 138);
  // Not in gRPC's words.
  EXPECT_THAT(
      reason->text,
      MatchesRegex("gave up after waiting 300ms for /job:ps/task:0 at "
                   "127.0.0.1:[0-9]+ .connection refused; nothing listens "
                   "there yet., which knows whether the job goes on; .*"));
}

// Nobody ever came; the other tasks hear of it from task 0.
TEST_F(PsTaskTest, WithoutWorkers_EveryPsEndsRetryable) {
  task_.reset();
  PsTaskOptions options = Options();
  options.max_wait = absl::Milliseconds(300);
  StartTask(options);
  (*options.cluster.mutable_job(0)->mutable_tasks())[0] =
      absl::StrCat("127.0.0.1:", task_->port());
  (*options.cluster.mutable_job(0)->mutable_tasks())[1] = "localhost:2";
  options.task_index = 1;
  options.max_wait = absl::Hours(2);
  StopLatch other_latch;
  const auto other = PsTask::Start(options, &other_latch);
  ASSERT_THAT(other, IsOk());
  for (StopLatch* const latch : {&latch_, &other_latch}) {
    const std::optional<StopReason> reason = latch->WaitFor(kPatience);
    ASSERT_TRUE(reason.has_value());
    EXPECT_EQ(reason->exit_code, 138);
    EXPECT_THAT(reason->text, StartsWith("nobody has trained here for 300ms"));
  }
}

}  // namespace
}  // namespace muster
