// Jobs that end by stop.steps, with workers of any speed: the rows that were
// dealt are trained on before the end.
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rows/row_ranges.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/coordinator/row_text.h"

namespace muster {
namespace {

constexpr int kTasks = 3;
// 24 leases, or 8 rounds of the three workers.
constexpr int64_t kEpochRows = 240;
constexpr int kMaxCalls = 20000;

class StopRowsJob : protected CoordinatorJob {
 protected:
  explicit StopRowsJob(unsigned seed) : random_(seed) {}

  void StartAt(const ReplicationSpec& spec, int64_t steps) {
    RowLedger ledger;
    ledger.set_epoch_rows(kEpochRows);
    SetLedger(ledger);
    Start(kTasks, spec, StopAtStep(steps));
  }

  static Sender SenderOf(int i) { return MakeSender(i, 100 + i); }

  void Ask(int i, int32_t ahead, int64_t step = 0) {
    Worker& worker = workers_[i];
    StepRequest request = MakeStep(SenderOf(i), step, step ? worker.round : 0);
    request.set_leases_ahead(ahead);
    if (step > 0) *request.mutable_rows() = worker.lease;
    ASSERT_THAT(Send(request, Number(SenderOf(i))), IsOk());
    worker.waits = true;
    Look();
  }

  // Takes the answers that have come.
  void Look() {
    for (int i = 0; i < kTasks; ++i) {
      const auto reply = Take(SenderOf(i));
      if (!reply.has_value()) continue;
      Worker& worker = workers_[i];
      worker.waits = false;
      worker.has_step = reply->granted();
      worker.round = reply->token().round();
      if (!reply->granted()) continue;
      ASSERT_GT(reply->leases_size(), 0);
      worker.lease = reply->leases(0);
    }
  }

  // What the worker does next: it asks, or reports its step.
  void Act(int i, int32_t ahead) {
    Worker& worker = workers_[i];
    if (worker.waits) return;
    if (!worker.has_step) return Ask(i, ahead);
    for (int64_t k = 0; k < NumRows(worker.lease); ++k) {
      ++visits_[PlaceOf(worker.lease, k) % kEpochRows];
    }
    Ask(i, ahead, ++worker.step);
  }

  // Runs to the end; each worker has a speed, and now and then another one.
  void RunToEnd(int32_t ahead) {
    std::vector<double> speeds;
    for (int call = 0; call < kMaxCalls && coordinator().phase() == RUNNING;
         ++call) {
      if (call % 50 == 0) {
        speeds.clear();
        for (int i = 0; i < kTasks; ++i) speeds.push_back(1u << random_() % 6);
      }
      std::discrete_distribution<int> next(speeds.begin(), speeds.end());
      Act(next(random_), ahead);
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(coordinator().phase(), STOPPING);
    ASSERT_EQ(coordinator().State().stop_reason(), "steps");
  }

  // Each row was trained on `passes` times, the first ones of a part of a pass
  // once more.
  void CheckVisits(double passes) {
    const auto rows = static_cast<int64_t>(passes * kEpochRows);
    for (int64_t row = 0; row < kEpochRows; ++row) {
      EXPECT_EQ(visits_[row],
                rows / kEpochRows + (row < rows % kEpochRows ? 1 : 0))
          << "row " << row;
    }
    EXPECT_EQ(coordinator().State().rows().done(), rows);
    EXPECT_EQ(coordinator().State().rows().leased(), 0);
    EXPECT_EQ(coordinator().State().rows().returned(), 0);
  }

  struct Worker {
    bool waits = false;
    bool has_step = false;
    int64_t round = 0;
    int64_t step = 0;
    RowLease lease;
  };
  std::mt19937 random_;
  Worker workers_[kTasks];
  std::map<int64_t, int> visits_;  // by row
};

// ---- Whole jobs -----------------------------------------------------------

enum class Mode { kFree, kClocks, kSync };

class CoordinatorStopRowsRandomTest
    : public testing::TestWithParam<std::tuple<Mode, int32_t, double, int>>,
      protected StopRowsJob {
 protected:
  CoordinatorStopRowsRandomTest()
      : StopRowsJob(static_cast<unsigned>(std::get<3>(GetParam()))) {}
};

TEST_P(CoordinatorStopRowsRandomTest, StepsOfSomePasses_HaveEachRowAsOften) {
  const auto [mode, ahead, passes, seed] = GetParam();
  const auto leases = static_cast<int64_t>(passes * kEpochRows / kBatch);
  if (mode == Mode::kSync) {
    StartAt(MakeSyncSpec(kTasks, kTasks), leases / kTasks);
  } else {
    StartAt(mode == Mode::kFree ? ReplicationSpec() : MakeBoundedSpec(3),
            leases);
  }
  RunToEnd(ahead);
  if (HasFatalFailure()) return;
  CheckVisits(passes);
}

std::string NameOf(
    const testing::TestParamInfo<std::tuple<Mode, int32_t, double, int>>& of) {
  const auto [mode, ahead, passes, seed] = of.param;
  const char* const name = mode == Mode::kFree     ? "Free"
                           : mode == Mode::kClocks ? "Clocks"
                                                   : "Sync";
  return absl::StrCat(name, "_Ahead", ahead, "_Passes",
                      passes == 1 ? "1" : "2_5", "_Seed", seed);
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, CoordinatorStopRowsRandomTest,
    testing::Combine(testing::Values(Mode::kFree, Mode::kClocks, Mode::kSync),
                     testing::Values(0, 1, 8), testing::Values(1.0, 2.5),
                     testing::Range(1, 6)),
    NameOf);

// ---- Row by row -----------------------------------------------------------

class CoordinatorStopRowsTest : public testing::Test, protected StopRowsJob {
 protected:
  CoordinatorStopRowsTest() : StopRowsJob(1) {}

  // The leases that the worker is answered with: "refused", "waits".
  std::string Leases(int i, int32_t ahead, int64_t step = 0,
                     int64_t round = 0) {
    StepRequest request = MakeStep(SenderOf(i), step, round);
    request.set_leases_ahead(ahead);
    EXPECT_THAT(Send(request, Number(SenderOf(i))), IsOk());
    const auto reply = Take(SenderOf(i));
    if (!reply.has_value()) return "waits";
    return reply->granted() ? LeasesText(reply->leases()) : "refused";
  }

  RowCounts Rows() { return coordinator().State().rows(); }
};

TEST_F(CoordinatorStopRowsTest, NoMoreIsLeasedAheadThanThereAreSteps) {
  StartAt({}, 3);
  EXPECT_EQ(Leases(1, 8), "0+10 10+10 20+10");
  EXPECT_EQ(Leases(0, 8), "10+10 20+10") << "those that B has not begun";
  EXPECT_EQ(Leases(0, 8, 1), "20+10");
  EXPECT_EQ(Leases(0, 8, 2), "refused");
  EXPECT_EQ(Leases(1, 8, 1), "refused");
  EXPECT_EQ(Rows().done(), 30);
  EXPECT_EQ(Rows().returned() + Rows().leased(), 0);
}

TEST_F(CoordinatorStopRowsTest, EarlierEndOfAChief_RecallsWhatDoesNotFit) {
  StartAt({}, 100);
  Leases(1, 8);
  EXPECT_EQ(Leases(0, 0), "90+10");
  Register(SenderOf(0));
  CommitEpochRequest commit;
  *commit.mutable_sender() = SenderOf(0);
  commit.set_model_epoch(coordinator().State().model_epoch());
  commit.set_batch_size(kBatch);
  *commit.mutable_stop() = StopAtStep(4);
  (*commit.mutable_ps_incarnations())[1] = 71;
  ASSERT_THAT(coordinator().CommitEpoch(commit, now()), IsOk());
  EXPECT_EQ(Rows().leased(), 20) << "the two steps";
  EXPECT_EQ(Leases(0, 8, 1), "10+10 20+10");
  EXPECT_EQ(Leases(0, 8, 2), "20+10");
  EXPECT_EQ(Leases(0, 8, 3), "refused");
}

TEST_F(CoordinatorStopRowsTest, LastRound_HasWhatASlowWorkerHadAhead) {
  StartAt(MakeSyncSpec(2, 3), 2);
  EXPECT_EQ(Leases(0, 8), "0+10 30+10");
  EXPECT_EQ(Leases(1, 8), "10+10 40+10");
  EXPECT_EQ(Leases(2, 8), "20+10 50+10");
  Leases(1, 8, 1, 1);
  EXPECT_EQ(Leases(2, 8, 1, 1), "40+10") << "the chief still has 0+10";
  EXPECT_EQ(LeasesText(Take(SenderOf(1))->leases()), "30+10");
  Leases(1, 8, 2, 2);
  EXPECT_EQ(Leases(2, 8, 2, 2), "refused");
  EXPECT_EQ(Rows().done(), 40);
}

}  // namespace
}  // namespace muster
