#include "worker/task/assigned_index.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/stopped_error.h"
#include "common/process/stop_latch.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Answers AssignTask as the test says.
class FakePs0 : public Link {
 public:
  using Answer =
      std::function<absl::StatusOr<AssignTaskReply>(const AssignTaskRequest&)>;
  explicit FakePs0(Answer answer) : answer_(std::move(answer)) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time /*deadline*/,
                 ReplyCallback<std::string> done) override {
    EXPECT_STREQ(method.path, kAssignTaskCall.path);
    ++calls_;
    AssignTaskRequest asked;
    EXPECT_TRUE(asked.ParseFromString(request));
    SerializeReply<AssignTaskReply>(std::move(done))(answer_(asked));
  }

  int calls() const { return calls_; }

 private:
  const Answer answer_;
  int calls_ = 0;
};

// Waits without time: what has to pass is over at once.
class ImpatientClock : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  bool Await(absl::Mutex* /*mu*/, const absl::Condition& condition,
             absl::Duration timeout) const override {
    if (condition.Eval()) return true;
    now_ += timeout;
    return false;
  }

 private:
  mutable absl::Time now_ = absl::UnixEpoch();
};

class AssignedIndexTest : public ::testing::Test {
 protected:
  absl::StatusOr<AssignTaskReply> Acquire(FakePs0* ps) {
    UnnumberedWorker worker;
    worker.job_namespace = "team";
    worker.incarnation = 7;
    worker.ps_address = "localhost:2222";
    worker.max_wait = absl::Minutes(1);
    worker.reporter = lines_.reporter();
    worker.clock = &clock_;
    worker.latch = latch_;
    return AcquireIndex(worker, ps);
  }

  ReportedLines lines_;
  StopLatch* latch_ = nullptr;

 private:
  ImpatientClock clock_;
};

TEST_F(AssignedIndexTest, PsTask0NumbersTheStart) {
  FakePs0 ps([](const AssignTaskRequest& request) {
    EXPECT_EQ(request.protocol_version(), kProtocolVersion);
    EXPECT_EQ(request.namespace_(), "team");
    EXPECT_EQ(request.incarnation(), 7);
    AssignTaskReply reply;
    reply.set_index(3);
    return reply;
  });
  EXPECT_EQ(Acquire(&ps)->index(), 3);
  EXPECT_EQ(ps.calls(), 1);
}

TEST_F(AssignedIndexTest, TheEndOfTheJobEndsTheWait) {
  int left = 30;
  FakePs0 ps(
      [&left](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
        if (--left > 0) return absl::UnavailableError("others come first");
        AssignTaskReply reply;
        reply.set_job_end("epochs, at step 20");
        return reply;
      });
  EXPECT_EQ(Acquire(&ps)->job_end(), "epochs, at step 20");
}

TEST_F(AssignedIndexTest, APsThatIsNotThereYet_IsWaitedForByName) {
  int left = 30;
  FakePs0 ps(
      [&left](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
        if (--left > 0) {
          return absl::UnavailableError(
              "/job:ps/task:0 at localhost:2222: connection refused");
        }
        return AssignTaskReply();
      });
  EXPECT_THAT(Acquire(&ps), IsOk());
  EXPECT_THAT(lines_.lines(),
              AllOf(Contains(HasSubstr("waiting for /job:ps/task:0 at "
                                       "localhost:2222 (connection refused)")),
                    Contains("I no longer waiting")));
}

TEST_F(AssignedIndexTest, APsThatWaitsForTheChief_IsWaitedForInItsWords) {
  int left = 30;
  FakePs0 ps(
      [&left](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
        if (--left > 0) return absl::UnavailableError("the chief is to come");
        return AssignTaskReply();
      });
  EXPECT_THAT(Acquire(&ps), IsOk());
  EXPECT_THAT(lines_.lines(),
              Contains(HasSubstr("waiting for /job:ps/task:0 at localhost:2222 "
                                 "(the chief is to come)")));
}

TEST_F(AssignedIndexTest, APsThatNeverComes_IsGivenUp) {
  FakePs0 ps([](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
    return absl::UnavailableError("connection refused");
  });
  EXPECT_THAT(Acquire(&ps),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("gave up after waiting 1m"),
                             HasSubstr("--max_wait"))));
}

TEST_F(AssignedIndexTest, ARefusal_EndsTheWaitAtOnce) {
  FakePs0 ps([](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
    return absl::UnimplementedError("no such call");
  });
  EXPECT_THAT(Acquire(&ps),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("refused: no such call"),
                             HasSubstr(std::string(kOtherProtocolAdvice)))));
  EXPECT_EQ(ps.calls(), 1);
}

TEST_F(AssignedIndexTest, StoppedLatch_EndsTheWait) {
  StopLatch latch;
  latch.Stop({143, "signal 15"});
  latch_ = &latch;
  FakePs0 ps([](const AssignTaskRequest&) -> absl::StatusOr<AssignTaskReply> {
    return absl::UnavailableError("nobody listens");
  });
  EXPECT_TRUE(IsStopped(Acquire(&ps).status()));
  EXPECT_EQ(ps.calls(), 1);
}

TEST_F(AssignedIndexTest, APsOnAnotherMachine_IsNotAskedWithoutTrust) {
  UnnumberedWorker worker;
  worker.ps_address = "192.0.2.1:2222";
  EXPECT_THAT(AcquireIndex(worker),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace muster
