// Random calls of a few workers, with losses, restarts, repeats and
// abandonments, against a plain model of what must hold after each.
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "common/rows/row_ranges.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

class CoordinatorStepsRandomTest : public CoordinatorTest,
                                   public testing::WithParamInterface<int> {
 protected:
  static constexpr int kTasks = 4;
  static constexpr int64_t kStop = 200;
  static constexpr int64_t kRows = 2003;

  struct Task {
    uint64_t incarnation = 0;
    int64_t step = 0;
    bool granted = false;
    bool lost = false;     // since the grant
    bool gave_up = false;  // the newest step
    RowLease lease;        // of the grant
  };

  void StartTasks(const StopSpec& stop) {
    for (int i = 0; i < kTasks; ++i) Restart(i, 100 + i);
    epoch_ = Begin(chief_)->model_epoch();
    CommitEpochRequest commit = MakeCommit(chief_, epoch_, 0);
    *commit.mutable_stop() = stop;
    commit.set_epoch_examples(kRows);
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  }

  int Pick(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }

  Sender SenderOf(int i) const { return MakeSender(i, tasks_[i].incarnation); }

  void Restart(int i, uint64_t incarnation) {
    tasks_[i] = Task();
    tasks_[i].incarnation = incarnation;
    ASSERT_THAT(Register(SenderOf(i)), IsOk());
  }

  // Half the time after which a worker is lost; all but `i` beat.
  void PassWithout(int i) {
    for (int other = 0; other < kTasks; ++other) {
      if (other == i) continue;
      ASSERT_THAT(Watch(SenderOf(other), 0), IsOk());
    }
    Pass(kTimeout / 2);
    if (coordinator_.State().workers(i).lost()) tasks_[i].lost = true;
  }

  StepReply Send(int i, int64_t step) {
    StepRequest request = MakeStep(SenderOf(i), step);
    request.set_step_rows(step_rows_[i]);
    request.set_leases_ahead(i % 3);
    request.set_examples(step == 0 ? 0 : NumRows(tasks_[i].lease));
    if (step > 0) *request.mutable_rows() = tasks_[i].lease;
    const auto reply = AskStep(coordinator_, request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(StepReply());
  }

  void Note(int i, const StepReply& reply) {
    Task& task = tasks_[i];
    task.granted = reply.granted();
    task.lost = false;
    if (!reply.granted()) return;
    ASSERT_GT(reply.leases_size(), 0);
    task.lease = reply.leases(0);
  }

  void RepeatReport(int i) {
    Note(i, Send(i, tasks_[i].gave_up ? 0 : tasks_[i].step));
  }

  // A repeat that was long on the way; nobody hears the answer.
  void RepeatLate(int i) {
    if (tasks_[i].granted) Send(i, tasks_[i].gave_up ? 0 : tasks_[i].step);
  }

  void GiveUp(int i) {
    Task& task = tasks_[i];
    if (!task.granted) return;
    Abandon(SenderOf(i), ++task.step);
    task.granted = false;
    task.gave_up = true;
  }

  void TakeStep(int i) {
    Task& task = tasks_[i];
    if (!task.granted) return Note(i, Send(i, 0));
    task.gave_up = false;
    const int64_t before = coordinator_.global_step();
    const StepReply reply = Send(i, ++task.step);
    const int64_t counted = coordinator_.global_step() - before;
    ASSERT_LE(counted, 1);
    ASSERT_TRUE(task.lost || counted == 1);
    if (counted == 1) Train(task.lease);
    Note(i, reply);
  }

  void Train(const RowLease& lease) {
    for (int64_t k = 0; k < NumRows(lease); ++k) {
      ASSERT_TRUE(trained_.insert(PlaceOf(lease, k)).second)
          << "row " << PlaceOf(lease, k) << " is in two counted steps";
    }
  }

  void Call(int call) {
    const int i = Pick(kTasks);
    switch (Pick(13)) {
      case 0:
        return Restart(i, static_cast<uint64_t>(1000 + call));
      case 1:
        return PassWithout(i);
      case 2:
        return RepeatReport(i);
      case 3:
        return GiveUp(i);
      case 4:
        return RepeatLate(i);
      default:
        TakeStep(i);
    }
  }

  void CheckCounts() {
    int64_t granted = 0;
    for (const Task& task : tasks_) granted += task.granted && !task.lost;
    const int64_t out = coordinator_.outstanding_grants();
    ASSERT_GE(out, granted);
    ASSERT_LE(out, kTasks);
    const JobState state = coordinator_.State();
    ASSERT_EQ(state.rows().done(), static_cast<int64_t>(trained_.size()));
    ASSERT_EQ(state.examples(), static_cast<int64_t>(trained_.size()));
    int64_t leased = 0;
    for (const WorkerState& worker : state.workers()) {
      leased += worker.leased_rows();
    }
    ASSERT_EQ(state.rows().leased(), leased);
    if (step_limit_ > 0) {
      ASSERT_LE(leased + state.rows().returned(),
                10 * (step_limit_ - coordinator_.global_step()))
          << "rows that no step is left for";
    }
  }

  // What is not trained on is in the ledger, and nothing else.
  void CheckLedger() {
    BeginCutRequest begin;
    const Sender chief = SenderOf(0);
    *begin.mutable_sender() = chief;
    begin.set_model_epoch(epoch_);
    begin.set_cut(++cuts_);
    ASSERT_THAT(coordinator_.BeginCut(begin, now_), IsOk());
    ConfirmCutRequest confirm;
    *confirm.mutable_sender() = chief;
    confirm.set_model_epoch(epoch_);
    const auto cut = coordinator_.ConfirmCut(confirm, now_);
    ASSERT_THAT(cut, IsOk());
    int64_t undone = 0;
    for (const RowRange& range : cut->ledger().undone()) {
      undone += range.rows();
      for (int64_t k = 0; k < range.rows(); ++k) {
        ASSERT_EQ(trained_.count(range.first() + k), 0u);
      }
    }
    ASSERT_EQ(cut->ledger().front() - undone,
              static_cast<int64_t>(trained_.size()));
  }

  // Calls until the job stops.
  void Run(int most_calls) {
    for (int call = 0; call < most_calls && coordinator_.phase() == RUNNING;
         ++call) {
      Call(call);
      CheckCounts();
      if (HasFatalFailure()) return;
    }
    CheckLedger();
    EXPECT_EQ(coordinator_.outstanding_grants(), 0);
    EXPECT_EQ(coordinator_.phase(), STOPPING);
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  std::vector<int64_t> step_rows_ = {10, 10, 7, 3};
  std::vector<Task> tasks_ = std::vector<Task>(kTasks);
  std::set<int64_t> trained_;
  int64_t step_limit_ = 0;  // of a job whose steps all have 10 rows
  int64_t cuts_ = 0;
};

TEST_P(CoordinatorStepsRandomTest, KeepsTheGlobalStepExact) {
  StopSpec stop;
  stop.set_steps(kStop);
  StartTasks(stop);
  Run(5000);
  EXPECT_EQ(coordinator_.global_step(), kStop);
}

TEST_P(CoordinatorStepsRandomTest, StepsOfOneLength_LeaveNoRowBehind) {
  step_rows_.assign(kTasks, 10);
  step_limit_ = kStop;
  StopSpec stop;
  stop.set_steps(kStop);
  StartTasks(stop);
  Run(5000);
  EXPECT_EQ(trained_.size(), 10 * kStop);
  EXPECT_EQ(*trained_.rbegin(), 10 * kStop - 1);
}

TEST_P(CoordinatorStepsRandomTest, TrainsOnEachRowOnce) {
  StopSpec stop;
  stop.set_epochs(1);
  StartTasks(stop);
  Run(20000);
  EXPECT_GT(trained_.size(), kRows - 10) << "less than a step is left";
  EXPECT_LT(*trained_.rbegin(), kRows);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CoordinatorStepsRandomTest,
                         testing::Range(1, 21));

}  // namespace
}  // namespace muster
