// The ps's side of shared memory, to workers that keep to the rules and to
// such that do not.
#include "ps_server/service/shared_memory_listener.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/local_socket.h"
#include "common/shared_memory/slot_message.h"
#include "common/shared_memory/slot_ring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/shard_server.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/ps_server/shard/row_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr uint32_t kTimeoutMs = 30000;

// A worker that may write anything.
class RawWorker {
 public:
  explicit RawWorker(SharedPeer peer)
      : peer_(std::move(peer)),
        requests_(&RingsOf(peer_.segment.data())->requests),
        answers_(&RingsOf(peer_.segment.data())->answers) {}

  SharedRings& rings() { return *RingsOf(peer_.segment.data()); }

  void Send(const RingEntry& entry) {
    requests_.Publish(entry);
    RingBell(peer_.socket);
  }
  void Send(uint32_t slot, DataMethod method, const std::string& message,
            const absl::Cord& data = absl::Cord()) {
    WriteSlot({message, data}, peer_.segment.data(), slot);
    Send({slot, static_cast<uint32_t>(method),
          static_cast<uint32_t>(message.size()),
          static_cast<uint32_t>(data.size()), kTimeoutMs});
  }
  // The data of a slot.
  const float* DataOfSlot(uint32_t slot) {
    return reinterpret_cast<const float*>(DataOf(peer_.segment.data(), slot));
  }

  // The status of the next answer; none if the ps hung up.
  std::optional<absl::Status> Await() {
    while (AwaitEntry(&answers_, peer_.socket, kLong) != RingEvent::kPeerGone) {
      const absl::StatusOr<std::optional<RingEntry>> entry = answers_.Take();
      if (!entry.ok() || !entry->has_value()) continue;
      const RingEntry& answer = **entry;
      if (answer.kind == 0) return absl::OkStatus();
      // A hostile worker may have written over the slot since.
      const absl::Status status = StatusFromBytes(absl::string_view(
          FieldsOf(peer_.segment.data(), answer.slot), answer.fields_bytes));
      return absl::Status(static_cast<absl::StatusCode>(answer.kind),
                          status.message());
    }
    return std::nullopt;
  }

 private:
  SharedPeer peer_;
  RingWriter requests_;
  RingReader answers_;
};

// While it lives, this process can open so many file descriptors.
class DescriptorsLeft {
 public:
  explicit DescriptorsLeft(int left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(OpenDescriptors() + 10);
    setrlimit(RLIMIT_NOFILE, &few);
    do {
      taken_.emplace_back(dup(0));
    } while (taken_.back().valid());
    taken_.resize(taken_.size() - 1 - left);
  }
  ~DescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

  DescriptorsLeft(const DescriptorsLeft&) = delete;
  DescriptorsLeft& operator=(const DescriptorsLeft&) = delete;

 private:
  rlimit before_ = {};
  std::vector<FileDescriptor> taken_;
};

// Bytes of a push to the shard, which has no model: it is fenced.
std::string FencedPush() {
  return MakePush(MakeSender(0, 100), 1, {}, absl::Cord())
      .header.SerializeAsString();
}

// Does something when it is first read.
class MeddlingClock : public MonotonicClock {
 public:
  absl::Time Now() const override {
    if (!std::exchange(has_meddled_, true)) meddle();
    return MonotonicClock::Now();
  }

  std::function<void()> meddle;

 private:
  mutable bool has_meddled_ = false;
};

// Makes a READY model of the table "user" of rows [3], first zeros.
void MakeTableOn(ShardServer* shard, const Sender& sender) {
  const auto call = [shard](const auto& row, const auto& request) {
    EXPECT_THAT(AwaitCall(*shard, row, request, absl::InfiniteFuture()),
                IsOk());
  };
  TableDef table = MakeTable("user", 3);
  table.set_initial(ZEROS);
  call(kHelloCall, MakeHello(sender));
  call(kDefineCall, MakeDefineTables(sender, {table}));
  call(kSealCall, MakeSeal(sender));
}

class SharedMemoryListenerTest : public testing::Test {
 protected:
  SharedMemoryListenerTest() : shard_(ShardOptions(&clock_)) { Restart(16); }

  static ShardServer::Options ShardOptions(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = clock;
    return options;
  }

  void Restart(int max_connections) { Restart(max_connections, &shard_); }
  void Restart(int max_connections, ShardServer* shard) {
    SharedMemoryListener::Options options;
    options.max_connections = max_connections;
    options.shard = shard;
    Restart(std::move(options));
  }
  void Restart(SharedMemoryListener::Options options) {
    options.clock = &clock_;
    auto listener = SharedMemoryListener::Start(std::move(options));
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
  }

  absl::StatusOr<SharedPeer> Join() {
    const absl::StatusOr<SharedMemoryOffer> offer = listener_->OfferTo(caller_);
    if (!offer.ok()) return offer.status();
    return JoinSegment(offer->socket_name(), offer->token());
  }
  RawWorker Connect() { return RawWorker(*Join()); }

  void ExpectHangsUpOn(const std::function<void(RawWorker*)>& misbehave) {
    RawWorker worker = Connect();
    misbehave(&worker);
    // Requests before the misdeed may have been served.
    std::optional<absl::Status> answer = worker.Await();
    if (answer.has_value()) answer = worker.Await();
    EXPECT_EQ(answer, std::nullopt);
    ExpectServes();
  }

  // A worker that keeps to the rules is served.
  void ExpectServes() {
    RawWorker worker = Connect();
    worker.Send(0, DataMethod::kPush, FencedPush());
    EXPECT_THAT(*worker.Await(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("fenced: ")));
  }

  void AwaitConnections(int count) {
    const absl::Time give_up = clock_.Now() + kLong;
    while (listener_->connections() != count && clock_.Now() < give_up) {
      std::this_thread::yield();
    }
    EXPECT_EQ(listener_->connections(), count);
  }

  MonotonicClock clock_;
  // Whom it is offered to.
  Caller caller_;
  ShardServer shard_;
  std::unique_ptr<SharedMemoryListener> listener_;
};

TEST_F(SharedMemoryListenerTest, PassesRequestsAndAnswers) { ExpectServes(); }

TEST_F(SharedMemoryListenerTest, AnswersEverySlot) {
  RawWorker worker = Connect();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t slot = 0; slot < kNumSlots; ++slot) {
      worker.Send(slot, DataMethod::kPush, FencedPush());
    }
    for (uint32_t slot = 0; slot < kNumSlots; ++slot) {
      ASSERT_TRUE(worker.Await().has_value());
    }
  }
}

// The worker's thread carries out a request after which others never stop.
TEST_F(SharedMemoryListenerTest, AWorkerIsServedAmongOthersWhoNeverStop) {
  constexpr int64_t kNever = 2'000'000;
  // Read by the shard in the first request's turn.
  MeddlingClock clock;
  ShardServer shard(ShardOptions(&clock));
  std::atomic<bool> is_served = false;
  int64_t asked = 0;
  const std::function<void(const absl::StatusOr<ShardState>&)> ask =
      [&](const absl::StatusOr<ShardState>&) {
        if (is_served || asked == kNever) return;
        ++asked;
        shard.Call(kStateCall, {}, absl::InfiniteFuture(), ask);
      };
  clock.meddle = [&ask] { ask(ShardState()); };
  Restart(/*max_connections=*/1, &shard);
  RawWorker worker = Connect();
  worker.Send(0, DataMethod::kPush, FencedPush());
  ASSERT_TRUE(worker.Await().has_value());
  worker.Send(1, DataMethod::kPush, FencedPush());
  EXPECT_TRUE(worker.Await().has_value());
  is_served = true;
  listener_.reset();
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, kNever);
}

TEST_F(SharedMemoryListenerTest, MessagesThatMakeNoSenseAreAnswered) {
  RawWorker worker = Connect();
  for (const DataMethod method :
       {DataMethod::kLoad, DataMethod::kPull, DataMethod::kPush,
        DataMethod::kReadSnapshot}) {
    for (const std::string& garbage :
         {std::string(100, '\xff'), std::string("\x7a\xff\xff\xff\x7f", 5),
          std::string(kSlotFieldsBytes, '\0')}) {
      worker.Send(3, method, garbage);
      EXPECT_THAT(*worker.Await(), StatusIs(absl::StatusCode::kInvalidArgument))
          << static_cast<int>(method);
    }
  }
  worker.Send(3, static_cast<DataMethod>(77), "");
  EXPECT_THAT(*worker.Await(), StatusIs(absl::StatusCode::kUnimplemented,
                                        HasSubstr("no call 77")));
}

// A chief's request among a worker's.
TEST_F(SharedMemoryListenerTest, ChecksTheCallerOfEachRequest) {
  caller_.role = Role::kWorker;
  caller_.task = TaskKey("worker", 1);
  RawWorker worker = Connect();
  worker.Send(0, DataMethod::kLoad, "");
  EXPECT_THAT(*worker.Await(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("ParameterService/Load over shared memory")));
  worker.Send(0, DataMethod::kPush, FencedPush());
  EXPECT_THAT(*worker.Await(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("wanted the task of its certificate")));
  caller_.task = TaskKey("worker", 0);
  RawWorker other = Connect();
  other.Send(0, DataMethod::kPush, FencedPush());
  EXPECT_THAT(*other.Await(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("fenced: ")));
}

TEST_F(SharedMemoryListenerTest, HangsUpOnWhoseCertificateHasEnded) {
  caller_ = {Role::kWorker, TaskKey("worker", 0)};
  caller_.valid_until = absl::InfinitePast();
  RawWorker worker = Connect();
  worker.Send(0, DataMethod::kPush, FencedPush());
  EXPECT_THAT(*worker.Await(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has ended")));
  EXPECT_EQ(worker.Await(), std::nullopt);
}

TEST_F(SharedMemoryListenerTest, ARequestThatComesTooLateIsNotCarriedOut) {
  RawWorker worker = Connect();
  worker.Send({0, static_cast<uint32_t>(DataMethod::kPull), 0, 0, 0});
  EXPECT_THAT(*worker.Await(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(SharedMemoryListenerTest, HangsUpOnASlotThatIsNotThere) {
  for (const uint32_t slot : {kNumSlots, 1u << 31, UINT32_MAX}) {
    ExpectHangsUpOn([slot](RawWorker* worker) {
      worker->Send({slot, 3, 10, 0, kTimeoutMs});
    });
  }
}

TEST_F(SharedMemoryListenerTest, HangsUpOnAMessageLargerThanASlot) {
  for (const uint32_t size :
       {static_cast<uint32_t>(kSlotFieldsBytes + 1), UINT32_MAX}) {
    ExpectHangsUpOn([size](RawWorker* worker) {
      worker->Send({0, 3, size, 0, kTimeoutMs});
    });
  }
  for (const uint32_t size :
       {static_cast<uint32_t>(kSlotDataBytes + 1), UINT32_MAX}) {
    ExpectHangsUpOn([size](RawWorker* worker) {
      worker->Send({0, 3, 0, size, kTimeoutMs});
    });
  }
}

TEST_F(SharedMemoryListenerTest, HangsUpOnACountThatCannotBe) {
  ExpectHangsUpOn([](RawWorker* worker) {
    worker->rings().requests.published = kNumSlots + 1;
    worker->Send({0, 3, 0, 0, kTimeoutMs});
    worker->rings().requests.published = 1u << 20;
  });
}

// The shard may have the first one, or have answered it: then the second is
// like any other.
TEST_F(SharedMemoryListenerTest, ASecondRequestInASlotHarmsNobody) {
  for (int i = 0; i < 20; ++i) {
    RawWorker worker = Connect();
    for (int j = 0; j < 5; ++j) {
      worker.Send(0, DataMethod::kPush, FencedPush());
    }
    worker.Await();
  }
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, ChangingWhatWasSentChangesNothing) {
  RawWorker worker = Connect();
  std::atomic<bool> done = false;
  std::thread scribbler([&] {
    SharedRings& rings = worker.rings();
    char* const slot = FieldsOf(reinterpret_cast<char*>(&rings), 0);
    while (!done) {
      // Flips between a frame and another frame's head.
      slot[1] ^= 0x55;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
  for (int i = 0; i < 200; ++i) {
    worker.Send(0, DataMethod::kPush, FencedPush());
    ASSERT_TRUE(worker.Await().has_value());
  }
  done = true;
  scribbler.join();
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, AStrangerGetsNothing) {
  EXPECT_FALSE(
      JoinSegment(listener_->OfferTo({})->socket_name(), NewSecret()).ok());
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, AnOfferEndsWithTheSocketThatShowedIt) {
  const SharedMemoryOffer offer = *listener_->OfferTo({});
  for (int i = 0; i < 40; ++i) ASSERT_THAT(listener_->OfferTo({}), IsOk());
  {
    const absl::StatusOr<SharedPeer> peer =
        JoinSegment(offer.socket_name(), offer.token());
    ASSERT_THAT(peer, IsOk());
  }
  AwaitConnections(0);
  EXPECT_THAT(JoinSegment(offer.socket_name(), offer.token()).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("does not know this offer")));
}

TEST_F(SharedMemoryListenerTest, WorkersTooManyAreTurnedAway) {
  Restart(/*max_connections=*/2);
  std::optional<RawWorker> first = Connect();
  const RawWorker second = Connect();
  EXPECT_THAT(Join().status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("serves 2 connections through shared")));
  EXPECT_THAT(
      JoinSegment(listener_->OfferTo({})->socket_name(), NewSecret()).status(),
      StatusIs(absl::StatusCode::kUnavailable))
      << "a stranger is told no more";
  first.reset();
  AwaitConnections(1);
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, ThoseWhoSayNothingTakeNoMoreThanTheirPlaces) {
  Restart(/*max_connections=*/2);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 20; ++i) {
    auto socket = ConnectLocal(listener_->OfferTo({})->socket_name());
    ASSERT_THAT(socket, IsOk());
    silent.push_back(*std::move(socket));
  }
  EXPECT_THAT(Join().status(), StatusIs(absl::StatusCode::kUnavailable));
  silent.clear();
  AwaitConnections(0);
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, AHundredWorkersLeaveNothing) {
  { RawWorker first = Connect(); }
  AwaitConnections(0);
  const int before = OpenDescriptors();
  for (int i = 0; i < 100; ++i) {
    RawWorker worker = Connect();
    // Half of them go before their answer.
    worker.Send(0, DataMethod::kPush, FencedPush());
    if (i % 2 == 0) worker.Await();
    if (i % 10 == 0) AwaitConnections(1);
  }
  AwaitConnections(0);
  listener_.reset();
  shard_.Close();
  // Without the listener's socket and its eventfd.
  EXPECT_EQ(OpenDescriptors(), before - 2);
  EXPECT_EQ(MappedSegments(), 0);
}

// One of this process's descriptors is left, for the worker's socket; the
// listener is asked, and finds none.
TEST_F(SharedMemoryListenerTest, LivesThroughATimeWithoutDescriptors) {
  {
    const DescriptorsLeft one(1);
    EXPECT_FALSE(Join().ok());
  }
  ExpectServes();
}

// Two are left, for the sockets of both sides.
TEST_F(SharedMemoryListenerTest, SaysWhyItCannotMakeASegment) {
  {
    const DescriptorsLeft two(2);
    EXPECT_THAT(Join().status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("bytes: memfd_create: Too many open")));
  }
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, ItsEndHangsUp) {
  RawWorker worker = Connect();
  AwaitConnections(1);
  listener_.reset();
  EXPECT_EQ(worker.Await(), std::nullopt);
}

TEST_F(SharedMemoryListenerTest, AnswersAfterTheWorkersEndGoNowhere) {
  for (int i = 0; i < 20; ++i) {
    RawWorker worker = Connect();
    for (uint32_t slot = 0; slot < kNumSlots; ++slot) {
      worker.Send(slot, DataMethod::kPush, FencedPush());
    }
  }
  AwaitConnections(0);
  ExpectServes();
}

TEST_F(SharedMemoryListenerTest, ValuesOfRows_TakeThePlaceOfTheirIds) {
  const Sender sender = MakeSender(0, 100);
  MakeTableOn(&shard_, sender);
  RawWorker worker = Connect();
  const auto push =
      MakeRowPush(sender, 1, {{"user", {8, 9}, {-1, -2, -3, -4, -5, -6}}});
  worker.Send(0, DataMethod::kPush, push.header.SerializeAsString(), push.data);
  ASSERT_THAT(*worker.Await(), IsOk());
  const auto pull = MakePullRows(sender, {{"user", {9, 7, 8}, {}}});
  worker.Send(1, DataMethod::kPullRows, pull.header.SerializeAsString(),
              pull.data);
  ASSERT_THAT(*worker.Await(), IsOk());
  const float* const values = worker.DataOfSlot(1);
  EXPECT_THAT(std::vector<float>(values, values + 9),
              testing::ElementsAre(4, 5, 6, 0, 0, 0, 1, 2, 3));
}

}  // namespace
}  // namespace muster
