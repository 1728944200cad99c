// The worker's side of shared memory, with a ps that is in this test's hands.
#include "worker/client/link/shared_memory_caller.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/retry_after.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"
#include "common/shared_memory/slot_message.h"
#include "gmock/gmock.h"
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
  SharedMemoryCaller::DoneCallback Callback() {
    return [shared = shared_](absl::StatusOr<SlotMessage> result) {
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
  std::string fields() const {
    EXPECT_THAT(status(), IsOk());
    return shared_->result->fields;
  }
  std::string data() const {
    EXPECT_THAT(status(), IsOk());
    return std::string(shared_->result->data);
  }
  void Drop() { shared_->result = absl::UnknownError("dropped"); }

 private:
  struct Shared {
    absl::StatusOr<SlotMessage> result = absl::UnknownError("none");
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
    runner_ = std::thread([this] {
      end_ = caller_->Run();
      caller_->Fail(end_);
    });
  }
  ~SharedMemoryCallerTest() override {
    caller_->Shutdown();
    runner_.join();
  }

  void Call(const std::string& fields, const Outcome& outcome,
            absl::Duration timeout = kLong, const std::string& data = "") {
    Outcome copy = outcome;
    caller_->Call(DataMethod::kPush, {fields, absl::Cord(data)},
                  clock_.Now() + timeout, copy.Callback());
  }

  // The ps's side.
  RingEntry PopRequest() {
    EXPECT_EQ(AwaitEntry(&requests_, ps_, kLong), RingEvent::kEntry);
    return **requests_.Take();
  }
  std::string RequestFields(const RingEntry& entry) {
    return std::string(FieldsOf(segment_.data(), entry.slot),
                       entry.fields_bytes);
  }
  std::string RequestData(const RingEntry& entry) {
    return std::string(DataOf(segment_.data(), entry.slot), entry.data_bytes);
  }
  void Answer(uint32_t slot, const std::string& fields,
              absl::StatusCode code = absl::StatusCode::kOk,
              const std::string& data = "") {
    WriteSlot({fields, absl::Cord(data)}, segment_.data(), slot);
    Publish({slot, static_cast<uint32_t>(code),
             static_cast<uint32_t>(fields.size()),
             static_cast<uint32_t>(data.size())});
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
  const RingEntry request = PopRequest();
  EXPECT_EQ(request.kind, static_cast<uint32_t>(DataMethod::kPush));
  EXPECT_GT(request.timeout_ms, 50000u);
  EXPECT_LE(request.timeout_ms, 60000u);
  EXPECT_EQ(RequestFields(request), "question");
  Answer(request.slot, "answer");
  EXPECT_EQ(outcome.fields(), "answer");
}

TEST_F(SharedMemoryCallerTest, TellsOfValuesThatItSawToBeFinite) {
  for (const float value : {3e38f, std::numeric_limits<float>::infinity()}) {
    const std::vector<float> values(100, value);
    Outcome outcome;
    Call("question", outcome, kLong,
         std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float)));
    const RingEntry request = PopRequest();
    EXPECT_EQ(request.is_finite, std::isfinite(value) ? 1u : 0u);
    Answer(request.slot, "answer");
    EXPECT_EQ(outcome.fields(), "answer");
  }
}

TEST_F(SharedMemoryCallerTest, CarriesAnErrorWithItsWords) {
  Outcome outcome;
  Call("question", outcome);
  Answer(PopRequest().slot,
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
  Answer(PopRequest().slot, StatusToBytes(full), full.code());
  EXPECT_EQ(RetryAfter(outcome.status()), absl::Milliseconds(40));
}

TEST_F(SharedMemoryCallerTest, AnErrorThatCannotBeReadIsStillOne) {
  for (const char* bytes : {"\xff\xff", "", "words"}) {
    Outcome outcome;
    Call("question", outcome);
    Answer(PopRequest().slot, bytes, absl::StatusCode::kNotFound);
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("the peer's error cannot be read")));
    EXPECT_TRUE(IsDamaged(outcome.status()));
  }
}

TEST_F(SharedMemoryCallerTest, CarriesMessagesOfEverySize) {
  for (const size_t fields : {size_t{0}, size_t{1}, kSlotFieldsBytes}) {
    for (const size_t data : {size_t{0}, size_t{1}, kSlotDataBytes}) {
      Outcome outcome;
      Call(std::string(fields, 'q'), outcome, kLong, std::string(data, 'g'));
      const RingEntry request = PopRequest();
      EXPECT_EQ(RequestFields(request), std::string(fields, 'q'));
      EXPECT_EQ(RequestData(request), std::string(data, 'g'));
      Answer(request.slot, std::string(fields, 'a'), absl::StatusCode::kOk,
             std::string(data, 'v'));
      EXPECT_EQ(outcome.fields(), std::string(fields, 'a'));
      EXPECT_EQ(outcome.data(), std::string(data, 'v'));
    }
  }
}

TEST_F(SharedMemoryCallerTest, RefusesWhatIsLargerThanASlot) {
  Outcome fields;
  Call(std::string(kSlotFieldsBytes + 1, 'q'), fields);
  Outcome data;
  Call("", data, kLong, std::string(kSlotDataBytes + 1, 'g'));
  for (const Outcome& outcome : {fields, data}) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("/job:ps/task:0 at here:1")));
  }
}

TEST_F(SharedMemoryCallerTest, CallsThatFindNoSlotWaitForOne) {
  std::vector<Outcome> outcomes(3 * kNumSlots);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Call(std::to_string(i), outcomes[i]);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const RingEntry request = PopRequest();
    EXPECT_EQ(RequestFields(request), std::to_string(i));
    Answer(request.slot, "answer to " + std::to_string(i));
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].fields(), "answer to " + std::to_string(i));
  }
}

TEST_F(SharedMemoryCallerTest, AnAnswerKeepsItsSlotWhileSomebodyHasIt) {
  const std::string large(kSlotDataBytes, 'v');
  std::vector<Outcome> outcomes(kNumSlots);
  for (const Outcome& outcome : outcomes) {
    Call("", outcome);
    Answer(PopRequest().slot, "", absl::StatusCode::kOk, large);
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.data(), large);
  Outcome next;
  Call("next", next);
  EXPECT_FALSE(requests_.HasEntry());
  outcomes[3].Drop();
  EXPECT_EQ(RequestFields(PopRequest()), "next");
  EXPECT_EQ(outcomes[4].data(), large);
}

TEST_F(SharedMemoryCallerTest, AnAnswerMayOutliveTheCaller) {
  Outcome outcome;
  Call("", outcome);
  const std::string large(kSlotDataBytes, 'v');
  Answer(PopRequest().slot, "", absl::StatusCode::kOk, large);
  EXPECT_THAT(outcome.status(), IsOk());
  caller_->Shutdown();
  runner_.join();
  runner_ = std::thread([] {});
  EXPECT_EQ(outcome.data(), large);
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
    const RingEntry request = PopRequest();
    const bool is_next = RequestFields(request) == "next";
    Answer(request.slot, "answer");
    if (is_next) break;
  }
  EXPECT_EQ(next.fields(), "answer");
}

TEST_F(SharedMemoryCallerTest, ThePsEndIsEveryCallsEnd) {
  std::vector<Outcome> outcomes(kNumSlots + 3);
  for (const Outcome& outcome : outcomes) Call("", outcome);
  ps_ = FileDescriptor();
  // By their deadlines they would have another end.
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kUnavailable,
                         "/job:ps/task:0 at here:1: the peer closed the shared "
                         "memory"));
  }
  ExpectLost("closed");
}

class HostileAnswerTest : public SharedMemoryCallerTest,
                          public testing::WithParamInterface<RingEntry> {};

TEST_P(HostileAnswerTest, EndsTheConnection) {
  Outcome outcome;
  Call("", outcome);
  EXPECT_EQ(PopRequest().slot, kFirstSlot);
  Publish(GetParam());
  EXPECT_THAT(outcome.status(), StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("makes no sense")));
  ExpectLost("makes no sense");
}

INSTANTIATE_TEST_SUITE_P(
    Entries, HostileAnswerTest,
    testing::Values(
        RingEntry{kNumSlots, 0, 0}, RingEntry{UINT32_MAX, 0, 0},
        RingEntry{kFirstSlot, 0, static_cast<uint32_t>(kSlotFieldsBytes + 1)},
        RingEntry{kFirstSlot, 0, UINT32_MAX},
        RingEntry{kFirstSlot, 0, 0, static_cast<uint32_t>(kSlotDataBytes + 1)},
        RingEntry{kFirstSlot, 0, 0, UINT32_MAX}, RingEntry{kFirstSlot, 17, 0},
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
