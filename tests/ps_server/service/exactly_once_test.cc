// Exactly once, at link level: integer gradients make float sums exact, so
// counters must equal acknowledged pushes whatever the link loses or repeats.
// Over each kind of link.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/linked_shard.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr int kWorkers = 4;

// A ready shard with one counter for each worker, and an element that all
// workers count in.
class ExactlyOnceTest : public testing::TestWithParam<LinkKind> {
 protected:
  static constexpr int64_t kElements = kWorkers + 1;

  ExactlyOnceTest() : shard_(GetParam(), ServerOptions(&clock_)) {
    for (int i = 0; i < kWorkers; ++i) Hello(MakeSender(i, 100 + i));
    const Sender chief = MakeSender(0, 100);
    EXPECT_THAT(AwaitReply<DefineReply>([&](auto done) {
                  shard_.link().Call(kDefineCall,
                                     MakeDefine(chief, {Counters()}), Soon(),
                                     done);
                }),
                IsOk());
    EXPECT_THAT(AwaitReply<LoadReply>([&](auto done) {
                  shard_.link().Load(
                      MakeLoad(chief, {MakeSlice("counters", 0, kElements)},
                               BytesOf(std::vector<float>(kElements))),
                      Soon(), done);
                }),
                IsOk());
    EXPECT_THAT(AwaitReply<SealReply>([&](auto done) {
                  shard_.link().Call(kSealCall, MakeSeal(chief), Soon(), done);
                }),
                IsOk());
  }

  static ShardServer::Options ServerOptions(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = clock;
    return options;
  }

  static TensorDef Counters() { return MakeTensor("counters", {kElements}); }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  void Hello(const Sender& sender) {
    uint64_t takeover = 0;
    do {
      const absl::StatusOr<HelloReply> reply =
          AwaitReply<HelloReply>([&](auto done) {
            shard_.link().Call(kHelloCall, MakeHello(sender, takeover), Soon(),
                               done);
          });
      ASSERT_THAT(reply, IsOk());
      takeover = reply->takeover();
    } while (takeover != 0);
  }

  // Adds 1 to the worker's counter and to the common one.
  absl::StatusOr<Frame<PushReply>> Push(ParameterLink& link, int worker,
                                        int64_t step) {
    return Push(link, MakeSender(worker, 100 + worker), step);
  }

  absl::StatusOr<Frame<PushReply>> Push(ParameterLink& link,
                                        const Sender& sender, int64_t step) {
    std::vector<float> gradient(kElements);
    gradient[sender.task().index()] = -1;
    gradient[kWorkers] = -1;
    return AwaitReply<Frame<PushReply>>([&](auto done) {
      link.Push(MakePush(sender, step, {MakeSlice("counters", 0, kElements)},
                         BytesOf(gradient)),
                Soon(), done);
    });
  }

  std::vector<float> Pull() {
    const auto reply = AwaitReply<Frame<PullReply>>([&](auto done) {
      shard_.link().Pull(
          MakePull(MakeSender(0, 100), {MakeSlice("counters", 0, kElements)}),
          Soon(), done);
    });
    EXPECT_THAT(reply, IsOk());
    return ValuesOf<float>(reply->data);
  }

  MonotonicClock clock_;
  LinkedShard shard_;
};

// T1: each step is sent 100 times, from 4 threads, also after a later step.
TEST_P(ExactlyOnceTest, AppliesOneOfAHundredRepeats) {
  constexpr int kRepeats = 100;
  const auto repeat = [this](int64_t step, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_THAT(Push(shard_.link(), /*worker=*/1, step), IsOk());
    }
  };
  for (const int64_t step : {1, 2}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back(repeat, step, kRepeats / 4);
    }
    for (std::thread& thread : threads) thread.join();
  }
  repeat(1, 1);  // out of order, after step 2

  EXPECT_THAT(Pull(), testing::ElementsAre(0, 2, 0, 0, 2));
  shard_.server().Close();
  EXPECT_EQ(shard_.server().counters().applied_parts, 2);
  EXPECT_EQ(shard_.server().counters().duplicate_parts, 2 * (kRepeats - 1) + 1);
}

// T2: replies lost after the apply, p = 0.2, 2,000 pushes with retries.
TEST_P(ExactlyOnceTest, CountersEqualAcknowledgedPushesOverALossyLink) {
  constexpr int64_t kPushesPerWorker = 500;
  constexpr uint64_t kSeed = 20221;
  LossyParameterLink link(&shard_.link(), {kSeed, /*lose_request=*/0.1,
                                           /*lose_reply=*/0.2, /*repeat=*/0.1});
  RecordProperty("seed", static_cast<int>(kSeed));
  std::vector<int64_t> acknowledged(kWorkers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      for (int64_t step = 1; step <= kPushesPerWorker; ++step) {
        while (!Push(link, worker, step).ok()) {
        }
        ++acknowledged[worker];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const std::vector<float> counters = Pull();
  for (int worker = 0; worker < kWorkers; ++worker) {
    EXPECT_EQ(counters[worker], acknowledged[worker]) << "seed " << kSeed;
  }
  EXPECT_EQ(counters[kWorkers], kWorkers * kPushesPerWorker);
  shard_.server().Close();
  EXPECT_EQ(shard_.server().counters().applied_parts,
            kWorkers * kPushesPerWorker);
  EXPECT_GT(shard_.server().counters().duplicate_parts, 0)
      << "the link lost nothing";
}

// T25: a worker is back while pushes of its former self are still in flight.
TEST_P(ExactlyOnceTest, FencesOldPushesInFlightWhenTheWorkerIsBack) {
  constexpr int kStarts = 20;
  int64_t acknowledged = 0;
  for (int start = 0; start < kStarts; ++start) {
    const Sender old_self = MakeSender(1, 1000 + 2 * start);
    const Sender new_self = MakeSender(1, 1001 + 2 * start);
    Hello(old_self);
    std::atomic<int64_t> steps_of_old = 0;
    std::thread in_flight([&] {
      for (int64_t step = 1; Push(shard_.link(), old_self, step).ok(); ++step) {
        steps_of_old = step;
      }
    });
    while (steps_of_old == 0) std::this_thread::yield();
    Hello(new_self);
    EXPECT_THAT(Push(shard_.link(), old_self, steps_of_old + 2),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         testing::StartsWith("fenced: ")));
    EXPECT_THAT(Push(shard_.link(), new_self, 1), IsOk());
    in_flight.join();
    acknowledged += steps_of_old + 1;
  }
  EXPECT_EQ(Pull()[1], acknowledged);
}

// At the shard: over gRPC such a request may still arrive in time.
TEST_P(ExactlyOnceTest, ARequestThatIsTooLateIsNotCarriedOut) {
  const auto reply = AwaitReply<Frame<PushReply>>([&](auto done) {
    shard_.server().Push(
        MakePush(MakeSender(0, 100), 1, {MakeSlice("counters", 0, kElements)},
                 BytesOf(std::vector<float>(kElements, -1))),
        clock_.Now(), done);
  });
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kDeadlineExceeded,
                              testing::HasSubstr("/job:ps/task:0")));
  EXPECT_THAT(Pull(), testing::Each(0.0f));
}

TEST_P(ExactlyOnceTest, AClosedServerAnswersUnavailable) {
  shard_.server().Close();
  EXPECT_THAT(Push(shard_.link(), 0, 1),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::HasSubstr("shutting down")));
}

INSTANTIATE_TEST_SUITE_P(Links, ExactlyOnceTest, testing::ValuesIn(kAllLinks),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace muster
