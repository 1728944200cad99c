// An epoch of three workers, of which one is slow: how long the others wait for
// it at the end.
#include <cstdint>
#include <map>
#include <tuple>

#include "common/rows/row_ranges.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/coordinator/row_text.h"

namespace muster {
namespace {

constexpr int kTasks = 3;
constexpr int kSlow = kTasks - 1;
constexpr int64_t kSteps = 40;
constexpr int64_t kRows = kSteps * CoordinatorJob::kBatch;
// Ticks of a step; those of the others are 1 long.
constexpr int kSlowTicks = 5;
constexpr int kMaxTicks = 10 * kSteps;

// Time goes by ticks. The parameters: leases ahead, and when the slow one
// begins.
class CoordinatorSlowWorkerTest
    : public testing::TestWithParam<std::tuple<int, int>>,
      protected CoordinatorJob {
 protected:
  struct Worker {
    int step = 0;
    int due = 0;           // the tick at which it does something next
    int last_step = 0;     // the tick at which it reported its last one
    int64_t refused = -1;  // the state's version at its refusal
    RowLease lease;
  };

  void Start() {
    RowLedger ledger;
    ledger.set_epoch_rows(kRows);
    SetLedger(ledger);
    StopSpec stop;
    // The commit counts kBatch rows as an epoch.
    stop.set_epochs(kSteps);
    CoordinatorJob::Start(kTasks, ReplicationSpec(), stop);
    workers_[kSlow].due = std::get<1>(GetParam());
  }

  // Reports the worker's step, if it has one, and asks for the next.
  void Act(int i, int tick) {
    Worker& worker = workers_[i];
    const Sender sender = MakeSender(i, 100 + i);
    const bool has_step = worker.lease.ranges_size() > 0;
    StepRequest request = MakeStep(sender, has_step ? ++worker.step : 0);
    request.set_leases_ahead(std::get<0>(GetParam()));
    if (has_step) {
      *request.mutable_rows() = worker.lease;
      for (int64_t k = 0; k < kBatch; ++k) ++visits_[PlaceOf(worker.lease, k)];
      worker.last_step = tick;
    }
    ASSERT_THAT(Send(request, Number(sender)), IsOk());
    const auto reply = Take(sender);
    ASSERT_TRUE(reply.has_value());
    worker.lease = reply->granted() ? reply->leases(0) : RowLease();
    worker.refused = reply->granted() ? -1 : reply->state_version();
    worker.due = tick + (i == kSlow && reply->granted() ? kSlowTicks : 1);
  }

  // The tick of the last report. Who was refused asks when there is news.
  int RunToEnd() {
    for (int tick = 0; tick < kMaxTicks; ++tick) {
      for (int i = 0; i < kTasks; ++i) {
        if (tick < workers_[i].due) continue;
        if (workers_[i].refused == coordinator().State().state_version()) {
          continue;
        }
        Act(i, tick);
        if (HasFatalFailure()) return 0;
        if (coordinator().phase() == STOPPING) return tick;
      }
    }
    ADD_FAILURE() << "no end in " << kMaxTicks << " ticks";
    return 0;
  }

  Worker workers_[kTasks];
  std::map<int64_t, int> visits_;  // by place
};

TEST_P(CoordinatorSlowWorkerTest, OthersWait_AtMostOneStepOfTheSlowOne) {
  Start();
  const int end = RunToEnd();
  if (HasFatalFailure()) return;
  for (int i = 0; i < kSlow; ++i) {
    EXPECT_LE(end - workers_[i].last_step, kSlowTicks);
  }
  EXPECT_EQ(visits_.size(), kRows);
  for (const auto& [place, visits] : visits_) {
    EXPECT_EQ(visits, 1) << "place " << place;
  }
  EXPECT_LT(workers_[kSlow].step, workers_[0].step / 3);
}

INSTANTIATE_TEST_SUITE_P(AheadAndBegin, CoordinatorSlowWorkerTest,
                         testing::Combine(testing::Values(0, 1, 2, 8),
                                          testing::Range(0, kSlowTicks)));

}  // namespace
}  // namespace muster
