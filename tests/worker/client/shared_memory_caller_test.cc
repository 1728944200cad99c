// The worker's side of shared memory, with a ps that is in this test's hands.
#include "worker/client/shared_memory_caller.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/retry_after.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"
#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
// That a new connection uses.
constexpr uint32_t kFirstSlot = kNumSlots - 1;

// A call's outcome, once it is there.
class Outcome {
 public:
  SharedMemoryCaller::BytesCallback Callback() {
    return [shared = shared_](absl::StatusOr<grpc::ByteBuffer> result) {
      shared->result = std::move(result);
      shared->there.Notify();
    };
  }
  bool HasCome() const { return shared_->there.HasBeenNotified(); }
  // Waits.
  absl::Status status() const {
    shared_->there.WaitForNotification();
    return shared_->result.status();
  }
  std::string bytes() const {
    EXPECT_THAT(status(), IsOk());
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(shared_->result->Dump(&slices).ok());
    std::string all;
    for (const grpc::Slice& slice : slices) {
      all.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return all;
  }
  void Drop() { shared_->result = absl::UnknownError("dropped"); }

 private:
  struct Shared {
    absl::StatusOr<grpc::ByteBuffer> result = absl::UnknownError("none");
    absl::Notification there;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

class SharedMemoryCallerTest : public testing::Test {
 protected:
  SharedMemoryCallerTest()
      : segment_(*MemorySegment::Create(kSegmentBytes)),
        requests_(&RingsOf(segment_.data())->requests),
        answers_(&RingsOf(segment_.data())->answers) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ps_ = FileDescriptor(ends[0]);
    SharedPeer peer{FileDescriptor(ends[1]),
                    *MemorySegment::Adopt(FileDescriptor(dup(segment_.fd())),
                                          kSegmentBytes)};
    caller_ = std::make_shared<SharedMemoryCaller>(
        PeerName{"/job:ps/task:0", "here:1"}, std::move(peer), &clock_);
    runner_ = std::thread([this] { end_ = caller_->Run(); });
  }
  ~SharedMemoryCallerTest() override {
    caller_->Shutdown();
    runner_.join();
  }

  void Call(const std::string& request, const Outcome& outcome,
            absl::Duration timeout = kLong) {
    const grpc::Slice slice(request);
    Outcome copy = outcome;
    caller_->Call(SharedMethod::kPush, grpc::ByteBuffer(&slice, 1),
                  clock_.Now() + timeout, copy.Callback());
  }

  // The ps's side.
  RingEntry TakeRequest() {
    EXPECT_EQ(AwaitEntry(&requests_, ps_, kLong), RingEvent::kEntry);
    return **requests_.Take();
  }
  std::string BytesOf(const RingEntry& entry) {
    return std::string(SlotOf(segment_.data(), entry.slot), entry.size_bytes);
  }
  void Answer(uint32_t slot, const std::string& bytes,
              absl::StatusCode code = absl::StatusCode::kOk) {
    std::memcpy(SlotOf(segment_.data(), slot), bytes.data(), bytes.size());
    Publish({slot, static_cast<uint32_t>(code),
             static_cast<uint32_t>(bytes.size())});
  }
  void Publish(const RingEntry& entry) {
    answers_.Publish(entry);
    RingBell(ps_);
  }

  // The connection ends, and whoever calls is told why.
  void ExpectLost(absl::string_view why) {
    Outcome waiting;
    Call("x", waiting);
    EXPECT_THAT(waiting.status(), StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr(std::string(why))));
  }

  MonotonicClock clock_;
  MemorySegment segment_;
  FileDescriptor ps_;
  RingReader requests_;
  RingWriter answers_;
  std::shared_ptr<SharedMemoryCaller> caller_;
  absl::Status end_;
  std::thread runner_;
};

TEST_F(SharedMemoryCallerTest, CarriesARequestAndItsAnswer) {
  Outcome outcome;
  Call("question", outcome);
  const RingEntry request = TakeRequest();
  EXPECT_EQ(request.kind, static_cast<uint32_t>(SharedMethod::kPush));
  EXPECT_GT(request.timeout_ms, 50000u);
  EXPECT_LE(request.timeout_ms, 60000u);
  EXPECT_EQ(BytesOf(request), "question");
  Answer(request.slot, "answer");
  EXPECT_EQ(outcome.bytes(), "answer");
}

TEST_F(SharedMemoryCallerTest, CarriesAnErrorWithItsWords) {
  Outcome outcome;
  Call("question", outcome);
  Answer(TakeRequest().slot,
         StatusToBytes(absl::FailedPreconditionError("fenced: too late")),
         absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(outcome.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         "fenced: too late"));
}

TEST_F(SharedMemoryCallerTest, CarriesWhenToComeAgain) {
  Outcome outcome;
  Call("question", outcome);
  absl::Status full = absl::ResourceExhaustedError("no room");
  SetRetryAfter(absl::Milliseconds(40), &full);
  Answer(TakeRequest().slot, StatusToBytes(full), full.code());
  EXPECT_EQ(RetryAfter(outcome.status()), absl::Milliseconds(40));
}

TEST_F(SharedMemoryCallerTest, AnErrorThatCannotBeReadIsStillOne) {
  for (const char* bytes : {"\xff\xff", "", "words"}) {
    Outcome outcome;
    Call("question", outcome);
    Answer(TakeRequest().slot, bytes, absl::StatusCode::kNotFound);
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("the peer's error cannot be read")));
  }
}

TEST_F(SharedMemoryCallerTest, CarriesMessagesOfEverySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65551}, size_t{65552},
                            size_t{65553}, kSlotBytes}) {
    Outcome outcome;
    const std::string bytes(size, 'q');
    Call(bytes, outcome);
    const RingEntry request = TakeRequest();
    EXPECT_EQ(BytesOf(request), bytes);
    Answer(request.slot, std::string(size, 'a'));
    EXPECT_EQ(outcome.bytes(), std::string(size, 'a'));
  }
}

TEST_F(SharedMemoryCallerTest, RefusesWhatIsLargerThanASlot) {
  Outcome outcome;
  Call(std::string(kSlotBytes + 1, 'q'), outcome);
  EXPECT_THAT(outcome.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("/job:ps/task:0 at here:1")));
}

TEST_F(SharedMemoryCallerTest, CallsThatFindNoSlotWaitForOne) {
  std::vector<Outcome> outcomes(3 * kNumSlots);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Call(std::to_string(i), outcomes[i]);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const RingEntry request = TakeRequest();
    EXPECT_EQ(BytesOf(request), std::to_string(i));
    Answer(request.slot, "answer to " + std::to_string(i));
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].bytes(), "answer to " + std::to_string(i));
  }
}

TEST_F(SharedMemoryCallerTest, AnAnswerKeepsItsSlotWhileSomebodyHasIt) {
  const std::string large(kSlotBytes, 'a');
  std::vector<Outcome> outcomes(kNumSlots);
  for (const Outcome& outcome : outcomes) {
    Call("", outcome);
    Answer(TakeRequest().slot, large);
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.bytes(), large);
  Outcome next;
  Call("next", next);
  EXPECT_FALSE(requests_.HasEntry());
  outcomes[3].Drop();
  EXPECT_EQ(BytesOf(TakeRequest()), "next");
  EXPECT_EQ(outcomes[4].bytes(), large);
}

TEST_F(SharedMemoryCallerTest, AnAnswerMayOutliveTheCaller) {
  Outcome outcome;
  Call("", outcome);
  Answer(TakeRequest().slot, std::string(kSlotBytes, 'a'));
  EXPECT_THAT(outcome.status(), IsOk());
  caller_->Shutdown();
  runner_.join();
  runner_ = std::thread([] {});
  EXPECT_EQ(outcome.bytes(), std::string(kSlotBytes, 'a'));
}

TEST_F(SharedMemoryCallerTest, ADeadlinePassesWhateverThePsDoes) {
  Outcome past;
  Call("", past, -absl::Seconds(1));
  EXPECT_THAT(past.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  Outcome late;
  Call("late", late, absl::Milliseconds(1));
  EXPECT_THAT(late.status(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      HasSubstr("/job:ps/task:0")));
}

TEST_F(SharedMemoryCallerTest, ALateAnswerOnlyFreesTheSlot) {
  std::vector<Outcome> late(kNumSlots);
  for (const Outcome& outcome : late) Call("", outcome, absl::Milliseconds(1));
  for (const Outcome& outcome : late) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  // Those that the runner was too slow to send are not there.
  Outcome next;
  Call("next", next);
  for (;;) {
    const RingEntry request = TakeRequest();
    const bool is_next = BytesOf(request) == "next";
    Answer(request.slot, "answer");
    if (is_next) break;
  }
  EXPECT_EQ(next.bytes(), "answer");
}

TEST_F(SharedMemoryCallerTest, ThePsEndIsEveryCallsEnd) {
  std::vector<Outcome> outcomes(kNumSlots + 3);
  for (const Outcome& outcome : outcomes) Call("", outcome);
  const absl::Time killed = clock_.Now();
  ps_ = FileDescriptor();
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kUnavailable,
                         "/job:ps/task:0 at here:1: the peer closed the shared "
                         "memory"));
  }
  EXPECT_LT(clock_.Now() - killed, absl::Seconds(1));
  ExpectLost("closed");
}

class HostileAnswerTest : public SharedMemoryCallerTest,
                          public testing::WithParamInterface<RingEntry> {};

TEST_P(HostileAnswerTest, EndsTheConnection) {
  Outcome outcome;
  Call("", outcome);
  EXPECT_EQ(TakeRequest().slot, kFirstSlot);
  Publish(GetParam());
  EXPECT_THAT(outcome.status(), StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("makes no sense")));
  ExpectLost("makes no sense");
}

INSTANTIATE_TEST_SUITE_P(
    Entries, HostileAnswerTest,
    testing::Values(RingEntry{kNumSlots, 0, 0}, RingEntry{UINT32_MAX, 0, 0},
                    RingEntry{kFirstSlot, 0,
                              static_cast<uint32_t>(kSlotBytes + 1)},
                    RingEntry{kFirstSlot, 0, UINT32_MAX},
                    RingEntry{kFirstSlot, 17, 0},
                    RingEntry{kFirstSlot, UINT32_MAX, 0}));

TEST_F(SharedMemoryCallerTest, AnAnswerToNothingEndsTheConnection) {
  Publish({2, 0, 0});
  ExpectLost("nothing was asked");
}

TEST_F(SharedMemoryCallerTest, ACountThatCannotBeEndsTheConnection) {
  RingsOf(segment_.data())->answers.published = 1u << 20;
  RingBell(ps_);
  ExpectLost("counts");
}

}  // namespace
}  // namespace muster
