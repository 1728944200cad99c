// The way to a ps task of this process, over real connections.
#include "worker/client/link/shard_link.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "common/rpc/call_table.h"
#include "common/rpc/credentials.h"
#include "common/rpc/server/listen_address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/ps_task.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FloatsPlace : public ValuePlace {
 public:
  explicit FloatsPlace(size_t size) : values_(size) {}

  absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) override {
    EXPECT_EQ(size_bytes, values_.size() * sizeof(float));
    return absl::MakeConstSpan(&piece_, 1);
  }
  bool WriteIfWanted(absl::FunctionRef<void()> write) override {
    write();
    return true;
  }
  // When the call has ended.
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
  const absl::Span<char> piece_ = absl::MakeSpan(
      reinterpret_cast<char*>(values_.data()), values_.size() * sizeof(float));
};

class ShardLinkTest : public testing::Test {
 protected:
  ~ShardLinkTest() override { End(); }

  // A link to a new ps that offers what `offers` says.
  ParameterLink* LinkTo(LinkChoice offers, LinkChoice choice) {
    End();
    PsTaskOptions options;
    JobDef* const ps = options.cluster.add_job();
    ps->set_name("ps");
    (*ps->mutable_tasks())[0] = "localhost:1";
    options.bind = "127.0.0.1:0";
    options.link = offers;
    options.incarnation = kPsIncarnation;
    options.clock = &clock_;
    auto task = PsTask::Start(std::move(options), &latch_);
    EXPECT_THAT(task, IsOk());
    task_ = *std::move(task);
    link_ = MakeShardLink(
        {{"/job:ps/task:0", absl::StrCat("127.0.0.1:", task_->port())},
         MakeTaskId("ps", 0)},
        InsecureCredentials(), choice, said_.reporter(), &clock_);
    return link_.get();
  }
  void End() {
    link_.reset();
    if (task_ != nullptr) task_->Drain();
    said_.Clear();
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(60); }
  template <typename M>
  absl::Status Call(const M& method, const typename M::Request& request) {
    return AwaitCall(*link_, method, request, Soon()).status();
  }
  absl::Status Hello() {
    HelloRequest hello = MakeHello(chief_);
    (*hello.mutable_ps_addresses())[0] = "localhost:1";
    return Call(kHelloCall, hello);
  }
  // Every call with tensors but a snapshot's, on a tensor "w" of two elements.
  void ExpectToTrain() {
    ASSERT_THAT(Hello(), IsOk());
    ASSERT_THAT(Call(kDefineCall, MakeDefine(chief_, {MakeTensor("w", {2})})),
                IsOk());
    ASSERT_THAT(AwaitReply<LoadReply>([&](auto done) {
                  link_->Load(MakeLoad(chief_, {All()}, BytesOf<float>({1, 2})),
                              Soon(), done);
                }),
                IsOk());
    ASSERT_THAT(Call(kSealCall, MakeSeal(chief_)), IsOk());
    ASSERT_THAT(AwaitReply<Frame<PushReply>>([&](auto done) {
                  link_->Push(
                      MakePush(chief_, 1, {All()}, BytesOf<float>({-1, -1})),
                      Soon(), done);
                }),
                IsOk());
    const auto pulled = AwaitReply<Frame<PullReply>>([&](auto done) {
      link_->Pull(MakePull(chief_, {All()}), Soon(), done);
    });
    ASSERT_THAT(pulled, IsOk());
    EXPECT_THAT(ValuesOf<float>(pulled->data), ElementsAre(2, 3));
  }
  static TensorSlice All() { return MakeSlice("w", 0, 2); }
  static std::string Line(const std::string& way) {
    return "I link to /job:ps/task:0: " + way;
  }

  const Sender chief_ = MakeSender(0, 7);
  MonotonicClock clock_;
  StopLatch latch_;
  ReportedLines said_;
  std::unique_ptr<PsTask> task_;
  std::unique_ptr<ParameterLink> link_;
};

TEST_F(ShardLinkTest, EachChoice_IsTheWayThatItNames) {
  const std::pair<LinkChoice, const char*> ways[] = {
      {LinkChoice::kAuto, "shared memory"},
      {LinkChoice::kSharedMemory, "shared memory"},
      {LinkChoice::kTcp, "TCP"},
      {LinkChoice::kGrpc, "gRPC"}};
  for (const auto& [choice, way] : ways) {
    LinkTo(LinkChoice::kAuto, choice);
    ExpectToTrain();
    EXPECT_THAT(said_.lines(), ElementsAre(Line(way)));
  }
}

TEST_F(ShardLinkTest, AutoWithoutMemory_IsTcp) {
  LinkTo(LinkChoice::kTcp, LinkChoice::kAuto);
  ExpectToTrain();
  EXPECT_THAT(
      said_.lines(),
      ElementsAre(Line("no shared memory: the ps offers none"), Line("TCP")));
}

TEST_F(ShardLinkTest, AutoWithoutMemoryAndTcp_IsGrpc) {
  LinkTo(LinkChoice::kGrpc, LinkChoice::kAuto);
  ExpectToTrain();
  EXPECT_THAT(said_.lines(),
              ElementsAre(Line("no shared memory: the ps offers none"),
                          Line("gRPC; no TCP: the ps offers none")));
}

TEST_F(ShardLinkTest, RequiredWayThatIsNotOffered_FailsHello) {
  const std::pair<LinkChoice, LinkChoice> others[] = {
      {LinkChoice::kTcp, LinkChoice::kSharedMemory},
      {LinkChoice::kSharedMemory, LinkChoice::kTcp}};
  for (const auto& [offers, required] : others) {
    LinkTo(offers, required);
    EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("the ps offers none; start the "
                                            "worker with --link=auto or")));
    EXPECT_THAT(said_.lines(), IsEmpty());
  }
}

TEST_F(ShardLinkTest, WithoutMemory_ValuesGoToTheirPlaceOverTcp) {
  LinkTo(LinkChoice::kTcp, LinkChoice::kAuto);
  ExpectToTrain();
  const auto pulled_to = std::make_shared<FloatsPlace>(2);
  const auto pulled = AwaitReply<Frame<PullReply>>([&](auto done) {
    link_->PullTo(pulled_to, MakePull(chief_, {All()}), Soon(), done);
  });
  ASSERT_THAT(pulled, IsOk());
  EXPECT_TRUE(pulled->is_placed);
  EXPECT_THAT(pulled_to->values(), ElementsAre(2, 3));
  const auto pushed_to = std::make_shared<FloatsPlace>(2);
  const auto pushed = AwaitReply<Frame<PushReply>>([&](auto done) {
    Frame<PushPart> push =
        MakePush(chief_, 2, {All()}, BytesOf<float>({-1, -1}));
    push.header.set_wants_values(true);
    link_->PushTo(pushed_to, push, Soon(), done);
  });
  ASSERT_THAT(pushed, IsOk());
  EXPECT_TRUE(pushed->is_placed);
  EXPECT_THAT(pushed_to->values(), ElementsAre(3, 4));
}

// As a refused Hello that is made again (Link::Call).
TEST(ShardLinkEndTest, ACallOfACallbackAtItsEndIsCancelled) {
  // Who connects there waits.
  const ListeningSockets silent = *ListenOn("127.0.0.1:0");
  const std::string address = absl::StrCat("127.0.0.1:", silent.port);
  for (const LinkChoice choice : {LinkChoice::kAuto, LinkChoice::kSharedMemory,
                                  LinkChoice::kTcp, LinkChoice::kGrpc}) {
    absl::Status last;
    {
      const std::unique_ptr<ParameterLink> link = MakeShardLink(
          {{"/job:ps/task:0", address}, MakeTaskId(kPsJob, 0)},
          InsecureCredentials(), choice, Reporter(), SystemClock());
      ParameterLink* const made = link.get();
      const absl::Time deadline = absl::InfiniteFuture();
      made->Call(kStateCall, {}, deadline,
                 [made, deadline, &last](const absl::StatusOr<ShardState>&) {
                   made->Call(kHelloCall, {}, deadline,
                              [&last](const absl::StatusOr<HelloReply>& reply) {
                                last = reply.status();
                              });
                 });
    }
    EXPECT_THAT(last, StatusIs(absl::StatusCode::kCancelled));
  }
}

}  // namespace
}  // namespace muster
