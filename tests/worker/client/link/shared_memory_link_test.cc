#include "worker/client/link/shared_memory_link.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "common/shared_memory/handshake.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/linked_shard.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// More than one part, and no whole number of any unit.
constexpr int64_t kElements = 3 * kMaxPartBytes / 4 - 5;
constexpr absl::Duration kLong = absl::Seconds(60);

// A push of step 2; if it fails, sent again as soon as that is known.
class AgainIfLost {
 public:
  void Send(ParameterLink* link, const Sender& sender, absl::Time deadline) {
    const auto push = [link, sender, deadline](auto done) {
      link->Push(MakePush(sender, 2, {MakeSlice("w", 0, kBlockElements)},
                          BytesOf(std::vector<float>(kBlockElements, -1))),
                 deadline, std::move(done));
    };
    push([this, push](const absl::StatusOr<Frame<PushReply>>& first) {
      if (!absl::IsUnavailable(first.status())) return End(first.status());
      push([this](const absl::StatusOr<Frame<PushReply>>& second) {
        End(second.status());
      });
    });
  }
  absl::Status Await() {
    ended_.WaitForNotification();
    return status_;
  }

 private:
  void End(const absl::Status& status) {
    status_ = status;
    ended_.Notify();
  }

  absl::Status status_;
  absl::Notification ended_;
};

class SharedMemoryLinkTest : public testing::Test {
 protected:
  LinkedShard::Options Options(bool required) {
    LinkedShard::Options options;
    options.shard.shard.incarnation = kPsIncarnation;
    options.shard.clock = &clock_;
    options.required = required;
    return options;
  }

  absl::Time Soon() const { return clock_.Now() + kLong; }

  absl::StatusOr<HelloReply> Hello(ParameterLink* link) {
    return AwaitReply<HelloReply>([&](auto done) {
      link->Call(kHelloCall, MakeHello(chief_), Soon(), done);
    });
  }
  void MakeReady(ParameterLink* link) {
    ASSERT_THAT(Hello(link), IsOk());
    ASSERT_THAT(AwaitReply<DefineReply>([&](auto done) {
                  link->Call(kDefineCall, MakeDefine(chief_, {Tensor()}),
                             Soon(), done);
                }),
                IsOk());
    std::vector<float> values(kElements);
    for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i);
    for (int64_t begin = 0; begin < kElements; begin += kPartElements) {
      const TensorSlice slice = Slice(begin);
      ASSERT_THAT(AwaitReply<LoadReply>([&](auto done) {
                    link->Load(
                        MakeLoad(chief_, {slice},
                                 BytesOf(std::vector<float>(
                                     values.begin() + begin,
                                     values.begin() + begin + slice.length()))),
                        Soon(), done);
                  }),
                  IsOk());
    }
    ASSERT_THAT(AwaitReply<SealReply>([&](auto done) {
                  link->Call(kSealCall, MakeSeal(chief_), Soon(), done);
                }),
                IsOk());
  }
  // Every element -1, but for the last one.
  absl::Status Push(ParameterLink* link, int64_t step, float last = -1) {
    std::vector<float> gradient(kBlockElements, -1);
    gradient.back() = last;
    return AwaitReply<Frame<PushReply>>([&](auto done) {
             link->Push(
                 MakePush(chief_, step, {MakeSlice("w", 0, kBlockElements)},
                          BytesOf(gradient)),
                 Soon(), done);
           })
        .status();
  }
  absl::StatusOr<std::vector<float>> Pull(ParameterLink* link, int64_t begin) {
    const auto reply = AwaitReply<Frame<PullReply>>([&](auto done) {
      link->Pull(MakePull(chief_, {Slice(begin)}), Soon(), done);
    });
    if (!reply.ok()) return reply.status();
    return ValuesOf<float>(reply->data);
  }

  static constexpr int64_t kPartElements = kMaxPartBytes / 4;
  static TensorDef Tensor() { return MakeTensor("w", {kElements}); }
  static TensorSlice Slice(int64_t begin) {
    return MakeSlice("w", begin, std::min(kPartElements, kElements - begin));
  }

  const Sender chief_ = MakeSender(0, 100);
  MonotonicClock clock_;
};

TEST_F(SharedMemoryLinkTest, WantsSmallerPartsWhileThereIsMemory) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/false));
  ParameterLink* const link = &shard.link();
  EXPECT_EQ(link->best_part_bytes(), kMaxPartBytes);
  ASSERT_THAT(Hello(link), IsOk());
  EXPECT_LT(link->best_part_bytes(), kMaxPartBytes);
  EXPECT_EQ(link->best_window_parts(), 4);
  EXPECT_EQ(link->best_part_bytes() % (kBlockElements * 4), 0);
}

TEST_F(SharedMemoryLinkTest, ANonFiniteGradientIsRefusedWhole) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ParameterLink* const link = &shard.link();
  ASSERT_NO_FATAL_FAILURE(MakeReady(link));
  const absl::StatusOr<std::vector<float>> before = Pull(link, 0);
  ASSERT_THAT(before, IsOk());
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(Push(link, 1, bad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("'w' has NaN or infinity at element 65535; "
                                   "nothing was changed")));
  }
  EXPECT_EQ(*Pull(link, 0), *before);
  EXPECT_THAT(Push(link, 1), IsOk());
}

TEST_F(SharedMemoryLinkTest, CarriesWholePartsBothWays) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ParameterLink* const link = &shard.link();
  ASSERT_NO_FATAL_FAILURE(MakeReady(link));
  EXPECT_EQ(shard.listener()->connections(), 1);
  EXPECT_THAT(shard.said(),
              ElementsAre("I link to /job:ps/task:0: shared memory"));
  ASSERT_THAT(Push(link, 1), IsOk());
  for (int64_t begin = 0; begin < kElements; begin += kPartElements) {
    const absl::StatusOr<std::vector<float>> values = Pull(link, begin);
    ASSERT_THAT(values, IsOk());
    ASSERT_EQ(values->size(), Slice(begin).length());
    for (size_t i = 0; i < values->size(); ++i) {
      const int64_t element = begin + static_cast<int64_t>(i);
      const float expected = static_cast<float>(element) +
                             (element < kBlockElements ? 1.0f : 0.0f);
      ASSERT_EQ((*values)[i], expected) << element;
    }
  }
}

TEST_F(SharedMemoryLinkTest, ReadsSnapshots) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = chief_;
  *begin.mutable_fence() = MakeFence();
  const auto begun = AwaitReply<BeginSnapshotReply>([&](auto done) {
    shard.link().Call(kBeginSnapshotCall, begin, Soon(), done);
  });
  ASSERT_THAT(begun, IsOk());
  ReadSnapshotRequest read;
  *read.mutable_sender() = chief_;
  *read.mutable_fence() = MakeFence();
  read.set_snapshot(begun->snapshot());
  *read.add_slices() = MakeSlice("w", 5, 3);
  const auto part = AwaitReply<Frame<SnapshotPart>>(
      [&](auto done) { shard.link().ReadSnapshot(read, Soon(), done); });
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT(ValuesOf<float>(part->data), ElementsAre(5, 6, 7));
}

TEST_F(SharedMemoryLinkTest, FallsBackToGrpcAndSaysSoOnce) {
  LinkedShard::Options options = Options(/*required=*/false);
  options.offers_none = true;
  LinkedShard shard(LinkKind::kSharedMemory, options);
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  ASSERT_THAT(Hello(&shard.link()), IsOk());
  ASSERT_THAT(Push(&shard.link(), 1), IsOk());
  EXPECT_THAT(shard.said(),
              ElementsAre("I link to /job:ps/task:0: no shared memory: the "
                          "ps offers none"));
}

TEST_F(SharedMemoryLinkTest, FallsBackWhereThePsIsNotOnThisMachine) {
  LinkedShard::Options options = Options(/*required=*/false);
  options.other_offer.set_socket_name(NewSecret());
  options.other_offer.set_token(NewSecret());
  LinkedShard shard(LinkKind::kSharedMemory, options);
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  EXPECT_THAT(shard.said(),
              ElementsAre(HasSubstr("no shared memory: the ps is not on "
                                    "this machine")));
}

TEST_F(SharedMemoryLinkTest, FallsBackFromAnOfferThatMakesNoSense) {
  LinkedShard::Options options = Options(/*required=*/false);
  options.other_offer.set_socket_name(std::string(5000, '\0'));
  LinkedShard shard(LinkKind::kSharedMemory, options);
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  EXPECT_THAT(shard.said(), ElementsAre(HasSubstr("no shared memory")));
}

TEST_F(SharedMemoryLinkTest, WhereItIsRequiredHelloFails) {
  LinkedShard::Options options = Options(/*required=*/true);
  options.offers_none = true;
  LinkedShard none(LinkKind::kSharedMemory, options);
  EXPECT_THAT(Hello(&none.link()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("start the worker with --link=auto or grpc")));
  EXPECT_THAT(Push(&none.link(), 1), StatusIs(absl::StatusCode::kUnavailable));

  options = Options(/*required=*/true);
  options.other_offer.set_socket_name(NewSecret());
  options.other_offer.set_token(NewSecret());
  LinkedShard elsewhere(LinkKind::kSharedMemory, options);
  EXPECT_THAT(Hello(&elsewhere.link()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("not on this machine")));
}

TEST_F(SharedMemoryLinkTest, GoesOnOverGrpcWhenTheMemoryIsLost) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/false));
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  ASSERT_THAT(Push(&shard.link(), 1), IsOk());
  // Some are on their way when it is lost.
  std::vector<AgainIfLost> pushes(20);
  for (AgainIfLost& push : pushes) push.Send(&shard.link(), chief_, Soon());
  shard.StopListening();
  for (AgainIfLost& push : pushes) EXPECT_THAT(push.Await(), IsOk());
  const absl::Time give_up = Soon();
  while (shard.said().size() < 2 && clock_.Now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ((*Pull(&shard.link(), 0))[0], 2);
  EXPECT_THAT(shard.said(),
              ElementsAre("I link to /job:ps/task:0: shared memory",
                          MatchesRegex("I link to /job:ps/task:0: connection "
                                       "lost; the ps at .* is gone or going"),
                          "I link to /job:ps/task:0: no shared memory: the "
                          "peer closed the shared memory"));
}

TEST_F(SharedMemoryLinkTest, MappingRefusedTwice_GoesOverGrpcAndSaysSoOnce) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/false));
  ParameterLink* const link = &shard.link();
  ASSERT_NO_FATAL_FAILURE(MakeReady(link));
  SharedMemoryOffer stale = *shard.listener()->OfferTo({});
  stale.set_token(NewSecret());
  shard.OfferInstead(stale);
  EXPECT_THAT(link->MapParameters(MakeFence(), kElements * 4),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("refused its memory 2 times: the ps does not "
                                 "know this offer")));
  // Those on their way are lost with the memory.
  AgainIfLost push;
  push.Send(link, chief_, Soon());
  EXPECT_THAT(push.Await(), IsOk());
  ASSERT_THAT(Hello(link), IsOk());
  EXPECT_EQ(link->best_part_bytes(), kMaxPartBytes);
  EXPECT_THAT(shard.said(),
              ElementsAre("I link to /job:ps/task:0: shared memory",
                          HasSubstr("no shared memory: the ps "
                                    "refused its memory 2 times")));
}

TEST_F(SharedMemoryLinkTest, MappingRefusedTwice_KeepsWhatIsRequired) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ParameterLink* const link = &shard.link();
  ASSERT_NO_FATAL_FAILURE(MakeReady(link));
  SharedMemoryOffer stale = *shard.listener()->OfferTo({});
  stale.set_token(NewSecret());
  shard.OfferInstead(stale);
  EXPECT_THAT(link->MapParameters(MakeFence(), kElements * 4),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Push(link, 1), IsOk());
}

TEST_F(SharedMemoryLinkTest, HelloOfManyAtOnceConnectsOnce) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_THAT(Hello(&shard.link()), IsOk()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shard.listener()->connections(), 1);
}

TEST_F(SharedMemoryLinkTest, ManyLinksLeaveNothing) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  for (int i = 0; i < 30; ++i) {
    const std::unique_ptr<ParameterLink> link = shard.NewLink();
    ASSERT_THAT(Hello(link.get()), IsOk());
    // On its way when the link ends.
    link->Pull(MakePull(chief_, {Slice(0)}), Soon(),
               [](const absl::StatusOr<Frame<PullReply>>&) {});
  }
  const absl::Time give_up = Soon();
  while (shard.listener()->connections() > 1 && clock_.Now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(shard.listener()->connections(), 1);
  ASSERT_THAT(Push(&shard.link(), 1), IsOk());
  // Either side's of the one that is left.
  EXPECT_EQ(MappedSegments(), 2);
}

TEST_F(SharedMemoryLinkTest, ItsEndAnswersWhatIsOnItsWay) {
  LinkedShard shard(LinkKind::kSharedMemory, Options(/*required=*/true));
  ASSERT_NO_FATAL_FAILURE(MakeReady(&shard.link()));
  std::unique_ptr<ParameterLink> link = shard.NewLink();
  ASSERT_THAT(Hello(link.get()), IsOk());
  std::atomic<int> answers = 0;
  for (int i = 0; i < 50; ++i) {
    link->Pull(MakePull(chief_, {Slice(0)}), Soon(),
               [&](const absl::StatusOr<Frame<PullReply>>&) { ++answers; });
  }
  link.reset();
  EXPECT_EQ(answers, 50);
}

}  // namespace
}  // namespace muster
