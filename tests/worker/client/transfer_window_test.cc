#include "worker/client/transfer_window.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/retry_after.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/failing_time.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Seconds(1000);

TransferWindow MakeMachine(std::vector<std::vector<int64_t>> part_bytes,
                           TransferOptions options = {}) {
  std::vector<std::string> names;
  for (size_t i = 0; i < part_bytes.size(); ++i) {
    names.push_back(absl::StrCat("/job:ps/task:", i));
  }
  return TransferWindow(options, part_bytes, names);
}

TEST(TransferWindowTest, EndsAtOnceWithoutParts) {
  TransferWindow machine = MakeMachine({{}, {}});
  const TransferWindow::Actions actions = machine.Start(kStart);
  ASSERT_TRUE(actions.done.has_value());
  EXPECT_THAT(*actions.done, IsOk());
}

TEST(TransferWindowTest, KeepsAWindowForEachShard) {
  TransferOptions options;
  options.window_parts = 2;
  TransferWindow machine = MakeMachine({{1, 1, 1}, {1}}, options);
  EXPECT_EQ(machine.Start(kStart).sends.size(), 3);
  const TransferWindow::Actions next =
      machine.OnAnswer(0, 1, 1, absl::OkStatus(), kStart);
  ASSERT_EQ(next.sends.size(), 1);
  EXPECT_EQ(next.sends[0].shard, 0);
  EXPECT_EQ(next.sends[0].part, 2);
}

TEST(TransferWindowTest, WindowWithoutAnOption_SuitsTheWay) {
  const std::vector<int64_t> parts(20, 1);
  TransferWindow machine = MakeMachine({parts, parts});
  machine.SuitWay(0, 8);
  EXPECT_EQ(machine.Start(kStart).sends.size(),
            8 + TransferWindow::kWindowParts);
}

TEST(TransferWindowTest, WindowOfTheOptions_StaysWhatItIs) {
  TransferOptions options;
  options.window_parts = 2;
  TransferWindow machine = MakeMachine({std::vector<int64_t>(20, 1)}, options);
  machine.SuitWay(0, 8);
  EXPECT_EQ(machine.Start(kStart).sends.size(), 2);
}

TEST(TransferWindowTest, ADamagedPartIsSentAgainButNotForEver) {
  const absl::Status damaged =
      Damaged(absl::InvalidArgumentError("malformed muster.PushPart frame"));
  for (const bool for_ever : {false, true}) {
    TransferWindow machine = MakeMachine({{1, 1}});
    absl::Time now = kStart;
    TransferWindow::Actions actions = machine.Start(now);
    machine.OnAnswer(0, 1, 1, absl::OkStatus(), now);
    for (int attempt = 1; attempt < kDamageTries; ++attempt) {
      actions = machine.OnAnswer(0, 0, attempt, damaged, now);
      ASSERT_FALSE(actions.done.has_value());
      ASSERT_TRUE(actions.wake_at.has_value());
      now = *actions.wake_at;
      actions = machine.OnTimer(now);
      ASSERT_EQ(actions.sends.size(), 1);
      EXPECT_EQ(actions.sends[0].part, 0);
    }
    actions = machine.OnAnswer(0, 0, kDamageTries,
                               for_ever ? damaged : absl::OkStatus(), now);
    ASSERT_TRUE(actions.done.has_value());
    EXPECT_EQ(actions.done->ok(), !for_ever);
    EXPECT_EQ(IsDamaged(*actions.done), for_ever);
  }
}

TEST(TransferWindowTest, NeitherSendsNorAwaitsWhatIsLeftOut) {
  constexpr int64_t kLeftOut = TransferWindow::kLeftOut;
  TransferWindow machine = MakeMachine({{kLeftOut, 1, kLeftOut}, {kLeftOut}});
  machine.CloseParts();
  EXPECT_TRUE(machine.Start(kStart).sends.empty());
  const TransferWindow::Actions opened = machine.OpenParts({{0, 1}}, kStart);
  ASSERT_EQ(opened.sends.size(), 1);
  EXPECT_EQ(opened.sends[0].part, 1);
  EXPECT_EQ(machine.OnAnswer(0, 1, 1, absl::OkStatus(), kStart).done,
            absl::OkStatus());
}

TEST(TransferWindowTest, AClosedPartWaitsUntilItIsOpened) {
  TransferOptions options;
  options.window_parts = 2;
  TransferWindow machine = MakeMachine({{1, 1, 1, 1}, {1}}, options);
  machine.CloseParts();
  EXPECT_TRUE(machine.Start(kStart).sends.empty());
  const TransferWindow::Actions first =
      machine.OpenParts({{0, 1}, {0, 2}, {0, 3}}, kStart);
  ASSERT_EQ(first.sends.size(), 2);
  EXPECT_EQ(first.sends[0].part, 1);
  EXPECT_EQ(first.sends[1].part, 2);
  EXPECT_EQ(machine.OnAnswer(0, 1, 1, absl::OkStatus(), kStart).sends.size(),
            1);
  for (const int part : {2, 3}) {
    const TransferWindow::Actions next =
        machine.OnAnswer(0, part, 1, absl::OkStatus(), kStart);
    EXPECT_TRUE(next.sends.empty());
    EXPECT_FALSE(next.done.has_value()) << "two parts are still closed";
  }
  EXPECT_EQ(machine.OpenParts({{0, 0}, {1, 0}}, kStart).sends.size(), 2);
  machine.OnAnswer(0, 0, 1, absl::OkStatus(), kStart);
  const TransferWindow::Actions last =
      machine.OnAnswer(1, 0, 1, absl::OkStatus(), kStart);
  ASSERT_TRUE(last.done.has_value());
  EXPECT_THAT(*last.done, IsOk());
}

TEST(TransferWindowTest, OpensNothingAfterItsEnd) {
  TransferWindow machine = MakeMachine({{1, 1}});
  machine.CloseParts();
  machine.Start(kStart);
  EXPECT_TRUE(machine.Cancel(absl::CancelledError("")).done.has_value());
  EXPECT_TRUE(machine.OpenParts({{0, 0}, {0, 1}}, kStart).sends.empty());
}

TEST(TransferWindowTest, GivesLongerToPartsBehindOthers) {
  TransferWindow machine = MakeMachine({{1 << 20, 1 << 20}});
  const TransferWindow::Actions actions = machine.Start(kStart);
  ASSERT_EQ(actions.sends.size(), 2);
  EXPECT_EQ(actions.sends[0].deadline, kStart + absl::Seconds(11));
  EXPECT_EQ(actions.sends[1].deadline, kStart + absl::Seconds(12));
}

TEST(TransferWindowTest, RepeatsALostPartAfterAPause) {
  TransferWindow machine = MakeMachine({{8}});
  machine.Start(kStart);
  const TransferWindow::Actions failed =
      machine.OnAnswer(0, 0, 1, absl::UnavailableError("refused"), kStart);
  EXPECT_TRUE(failed.sends.empty());
  ASSERT_TRUE(failed.wake_at.has_value());
  EXPECT_GT(*failed.wake_at, kStart);
  const TransferWindow::Actions again = machine.OnTimer(*failed.wake_at);
  ASSERT_EQ(again.sends.size(), 1);
  EXPECT_EQ(again.sends[0].part, 0);
  EXPECT_EQ(again.sends[0].attempt, 2);
  EXPECT_EQ(machine.retries(), 1);
}

// Else a shard that is away gets every part of a large model at once, again
// and again.
TEST(TransferWindowTest, PausingPartsKeepTheirPlaceInTheWindow) {
  TransferOptions options;
  options.window_parts = 2;
  TransferWindow machine = MakeMachine({{1, 1, 1, 1}}, options);
  ASSERT_EQ(machine.Start(kStart).sends.size(), 2);
  const absl::Status refused = absl::UnavailableError("refused");
  EXPECT_TRUE(machine.OnAnswer(0, 0, 1, refused, kStart).sends.empty());
  EXPECT_TRUE(machine.OnAnswer(0, 1, 1, refused, kStart).sends.empty());
  const TransferWindow::Actions again =
      machine.OnTimer(kStart + options.backoff.max);
  ASSERT_EQ(again.sends.size(), 2);
  EXPECT_EQ(again.sends[0].part, 0);
  EXPECT_EQ(again.sends[1].part, 1);
}

TEST(TransferWindowTest, AsksForATimerOnce) {
  TransferWindow machine = MakeMachine({{8}, {1, 1, 1, 1}});
  machine.Start(kStart);
  const TransferWindow::Actions failed =
      machine.OnAnswer(0, 0, 1, absl::UnavailableError("refused"), kStart);
  ASSERT_TRUE(failed.wake_at.has_value());
  for (int part = 0; part < 4; ++part) {
    EXPECT_FALSE(machine.OnAnswer(1, part, 1, absl::OkStatus(), kStart)
                     .wake_at.has_value());
  }
  // Too early: what was asked for still comes.
  EXPECT_FALSE(machine.OnTimer(kStart).wake_at.has_value());
  EXPECT_EQ(machine.OnTimer(*failed.wake_at).sends.size(), 1);
}

// Long before it is given up: the session, which says it then, is not asked
// until the transfer has ended.
TEST(TransferWindowTest, SaysForWhomItWaitsASecondAfterTheLoss) {
  TransferWindow machine = MakeMachine({{8}, {8}});
  machine.Start(kStart);
  const absl::Status refused = absl::UnavailableError("refused");
  TransferWindow::Actions actions = machine.OnAnswer(0, 0, 1, refused, kStart);
  absl::Time now = kStart;
  int attempt = 1;
  std::vector<std::pair<absl::Duration, std::string>> lines;
  while (!actions.done.has_value() && now < kStart + absl::Minutes(1)) {
    now += absl::Milliseconds(50);
    actions = machine.OnTimer(now);
    for (const std::string& line : actions.lines) {
      lines.emplace_back(now - kStart, line);
    }
    if (actions.sends.empty()) continue;
    ++attempt;
    actions = machine.OnAnswer(0, 0, attempt, refused, now);
    for (const std::string& line : actions.lines) {
      lines.emplace_back(now - kStart, line);
    }
  }
  ASSERT_EQ(lines.size(), 1);
  EXPECT_GE(lines[0].first, absl::Seconds(1));
  EXPECT_LE(lines[0].first, absl::Seconds(2));
  EXPECT_EQ(lines[0].second, "waiting for /job:ps/task:0: refused; 1 s so far");
  ASSERT_TRUE(actions.done.has_value());
  EXPECT_EQ(FailingTime(*actions.done), now - kStart);
  EXPECT_GE(FailingTime(*actions.done), absl::Seconds(5));
}

TEST(TransferWindowTest, SaysThatItWaitsNoLonger) {
  TransferWindow machine = MakeMachine({{8, 8}});
  machine.Start(kStart);
  const absl::Status refused = absl::UnavailableError("refused");
  machine.OnAnswer(0, 0, 1, refused, kStart);
  const absl::Time later = kStart + absl::Seconds(1);
  ASSERT_EQ(machine.OnTimer(later).sends.size(), 1);
  EXPECT_EQ(machine.OnAnswer(0, 0, 2, refused, later).lines.size(), 1);
  EXPECT_THAT(machine.OnAnswer(0, 1, 1, absl::OkStatus(), later).lines,
              ElementsAre("no longer waiting for /job:ps/task:0"));
  // In silence, if nothing was said.
  const absl::Time again = later + absl::Seconds(1);
  ASSERT_EQ(machine.OnTimer(again).sends.size(), 1);
  machine.OnAnswer(0, 0, 3, refused, again);
  const absl::Time end = again + absl::Milliseconds(900);
  ASSERT_EQ(machine.OnTimer(end).sends.size(), 1);
  EXPECT_THAT(machine.OnAnswer(0, 0, 4, absl::OkStatus(), end).lines,
              IsEmpty());
}

TEST(TransferWindowTest, FencedEndsAtOnceAsAborted) {
  TransferWindow machine = MakeMachine({{8}, {8}});
  machine.Start(kStart);
  const TransferWindow::Actions actions =
      machine.OnAnswer(1, 0, 1, FencedError("epoch 3 is over"), kStart);
  ASSERT_TRUE(actions.done.has_value());
  EXPECT_THAT(*actions.done,
              StatusIs(absl::StatusCode::kAborted,
                       "/job:ps/task:1: fenced: epoch 3 is over"));
}

TEST(TransferWindowTest, ARefusalIsNotRepeated) {
  TransferWindow machine = MakeMachine({{8}});
  machine.Start(kStart);
  const TransferWindow::Actions actions = machine.OnAnswer(
      0, 0, 1, absl::InvalidArgumentError("shape differs"), kStart);
  ASSERT_TRUE(actions.done.has_value());
  EXPECT_THAT(*actions.done, StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("/job:ps/task:0")));
}

TEST(TransferWindowTest, GivesUpNamingTheShardAndTheCause) {
  TransferOptions options;
  options.give_up_after = absl::Seconds(3);
  TransferWindow machine = MakeMachine({{8}}, options);
  absl::Time now = kStart;
  TransferWindow::Actions actions = machine.Start(now);
  while (!actions.done.has_value()) {
    if (!actions.sends.empty()) {
      actions = machine.OnAnswer(0, 0, actions.sends[0].attempt,
                                 absl::UnavailableError("refused"), now);
    } else {
      ASSERT_TRUE(actions.wake_at.has_value());
      now = *actions.wake_at;
      actions = machine.OnTimer(now);
    }
  }
  EXPECT_THAT(*actions.done,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/job:ps/task:0: refused; given up after")));
  EXPECT_GE(now - kStart, options.give_up_after);
  EXPECT_LT(now - kStart, options.give_up_after + options.backoff.max);
}

TEST(TransferWindowTest, ComesAgainWhenTheShardSaysSo) {
  TransferWindow machine = MakeMachine({{8}});
  machine.Start(kStart);
  absl::Status full = absl::ResourceExhaustedError("no room");
  SetRetryAfter(absl::Seconds(3), &full);
  const TransferWindow::Actions refused =
      machine.OnAnswer(0, 0, 1, full, kStart);
  ASSERT_TRUE(refused.wake_at.has_value());
  EXPECT_GT(*refused.wake_at, kStart + absl::Seconds(3));
  EXPECT_EQ(machine.OnTimer(*refused.wake_at).sends.size(), 1);
}

TEST(TransferWindowTest, IsPatientWithAShardThatHasNoRoom) {
  TransferOptions options;
  TransferWindow machine = MakeMachine({{8}}, options);
  machine.Start(kStart);
  absl::Status full = absl::ResourceExhaustedError("no room");
  SetRetryAfter(absl::Seconds(1), &full);
  absl::Time now = kStart;
  int attempt = 1;
  TransferWindow::Actions actions;
  while (!actions.done.has_value()) {
    actions = machine.OnAnswer(0, 0, attempt++, full, now);
    if (actions.wake_at.has_value()) {
      now = *actions.wake_at;
      machine.OnTimer(now);
    }
    ASSERT_LT(attempt, 1000);
  }
  EXPECT_GE(now - kStart, TransferWindow::kPatience * options.give_up_after);
  EXPECT_THAT(actions.done->message(), HasSubstr("no room"));
}

TEST(TransferWindowTest, IgnoresALateAnswer) {
  TransferWindow machine = MakeMachine({{8}});
  machine.Start(kStart);
  const auto failed = machine.OnAnswer(
      0, 0, 1, absl::DeadlineExceededError("no answer"), kStart);
  machine.OnTimer(*failed.wake_at);
  EXPECT_FALSE(machine
                   .OnAnswer(0, 0, 1, absl::InvalidArgumentError("late"),
                             *failed.wake_at)
                   .done.has_value());
  EXPECT_TRUE(machine.OnAnswer(0, 0, 2, absl::OkStatus(), *failed.wake_at)
                  .done.has_value());
}

TEST(TransferWindowTest, CancelEndsOnce) {
  TransferWindow machine = MakeMachine({{8}});
  machine.Start(kStart);
  EXPECT_TRUE(machine.Cancel(absl::CancelledError("x")).done.has_value());
  EXPECT_FALSE(machine.Cancel(absl::CancelledError("x")).done.has_value());
  EXPECT_FALSE(
      machine.OnAnswer(0, 0, 1, absl::OkStatus(), kStart).done.has_value());
}

// A network with a virtual clock: every answer comes after a random time, some
// are failures. Checks what must hold at every step.
class RandomNetwork {
 public:
  RandomNetwork(uint32_t seed, const std::vector<std::vector<int64_t>>& parts)
      : random_(seed), parts_(parts) {
    options_.window_parts = 1 + static_cast<int>(random_() % 4);
    options_.give_up_after = absl::Hours(1);
    options_.seed = seed;
    failure_percent_ = random_() % 60;
  }

  void Run() {
    TransferWindow machine = MakeMachine(parts_, options_);
    Take(machine.Start(now_));
    while (!done_) {
      ASSERT_FALSE(events_.empty()) << "nothing will ever happen again";
      const auto first = events_.begin();
      now_ = first->first;
      const TransferWindow::Send send = first->second;
      events_.erase(first);
      if (send.shard < 0) {
        Take(machine.OnTimer(now_));
        continue;
      }
      in_flight_.erase({send.shard, send.part});
      const bool fails = random_() % 100 < failure_percent_;
      if (!fails) acknowledged_.insert({send.shard, send.part});
      Take(machine.OnAnswer(
          send.shard, send.part, send.attempt,
          fails ? absl::UnavailableError("lost") : absl::OkStatus(), now_));
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(machine.in_flight(), 0);
    EXPECT_EQ(acknowledged_.size(), NumParts());
  }

 private:
  static bool HasFatalFailure() { return testing::Test::HasFatalFailure(); }

  size_t NumParts() const {
    size_t sum = 0;
    for (const std::vector<int64_t>& of_shard : parts_) sum += of_shard.size();
    return sum;
  }

  void Take(const TransferWindow::Actions& actions) {
    for (const TransferWindow::Send& send : actions.sends) {
      const std::pair<int, int> key(send.shard, send.part);
      ASSERT_TRUE(in_flight_.insert(key).second) << "sent twice at once";
      ASSERT_EQ(acknowledged_.count(key), 0) << "sent after its answer";
      int of_shard = 0;
      for (const auto& [shard, part] : in_flight_)
        of_shard += shard == send.shard;
      ASSERT_LE(of_shard, options_.window_parts);
      events_.emplace(now_ + absl::Milliseconds(random_() % 50), send);
    }
    if (actions.wake_at.has_value()) {
      events_.emplace(*actions.wake_at,
                      TransferWindow::Send{-1, 0, 0, absl::Time()});
    }
    if (actions.done.has_value()) {
      ASSERT_FALSE(done_) << "ended twice";
      EXPECT_THAT(*actions.done, IsOk());
      done_ = true;
    }
  }

  std::mt19937 random_;
  const std::vector<std::vector<int64_t>> parts_;
  TransferOptions options_;
  uint32_t failure_percent_;
  absl::Time now_ = kStart;
  std::multimap<absl::Time, TransferWindow::Send> events_;
  std::set<std::pair<int, int>> in_flight_;
  std::set<std::pair<int, int>> acknowledged_;
  bool done_ = false;
};

TEST(TransferWindowTest, NamesAShardThatDoesNotAnswer) {
  TransferWindow machine = MakeMachine({{1, 1}, {1}});
  machine.Start(kStart);
  machine.OnAnswer(1, 0, 1, absl::OkStatus(), kStart);
  const auto lines_at = [&machine](int seconds) {
    return machine.SaySilence(kStart + absl::Seconds(seconds)).lines;
  };
  EXPECT_THAT(lines_at(1), IsEmpty());
  EXPECT_THAT(lines_at(2),
              ElementsAre("waiting for /job:ps/task:0 to answer 2 messages of "
                          "this transfer; 2 s so far"));
  for (int second = 3; second < 12; ++second) {
    EXPECT_THAT(lines_at(second), IsEmpty()) << second;
  }
  EXPECT_EQ(lines_at(12).size(), 1);
  EXPECT_THAT(
      machine.OnAnswer(0, 0, 1, absl::OkStatus(), kStart + absl::Seconds(13))
          .lines,
      ElementsAre("no longer waiting for /job:ps/task:0"));
  // It was heard.
  EXPECT_THAT(lines_at(14), IsEmpty());
  EXPECT_THAT(lines_at(15), ElementsAre(HasSubstr("to answer 1 message of")));
}

TEST(TransferWindowTest, AShardWithNothingToAnswerIsNotSilent) {
  TransferWindow machine = MakeMachine({{1}});
  machine.CloseParts();
  machine.Start(kStart);
  const absl::Time later = kStart + absl::Seconds(30);
  EXPECT_THAT(machine.SaySilence(later).lines, IsEmpty());
  machine.OpenParts({{0, 0}}, later);
  EXPECT_THAT(machine.SaySilence(later + absl::Seconds(1)).lines, IsEmpty());
  EXPECT_EQ(machine.SaySilence(later + absl::Seconds(2)).lines.size(), 1);
}

TEST(TransferWindowTest, BringsEveryPartOverAFaultyNetwork) {
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomNetwork network(seed, {{5, 6, 7, 8, 9, 10}, {}, {11}, {12, 13}});
    network.Run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace muster
