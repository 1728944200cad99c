// Random calls of a few workers, with losses, restarts, repeats and
// abandonments, against a plain model of what must hold after each.
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

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

  struct Task {
    uint64_t incarnation = 0;
    int64_t step = 0;
    bool granted = false;
    bool gave_up = false;  // the newest step
  };

  void StartTasks() {
    StartRun(kTasks, kStop);
    for (int i = 0; i < kTasks; ++i) tasks_[i].incarnation = 100 + i;
  }

  int Pick(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }

  Sender SenderOf(int i) const { return MakeSender(i, tasks_[i].incarnation); }

  void Restart(int i, uint64_t incarnation) {
    tasks_[i] = Task{incarnation};
    ASSERT_THAT(Register(SenderOf(i)), IsOk());
  }

  // Half the time after which a worker is lost; all but `i` beat.
  void PassWithout(int i) {
    for (int other = 0; other < kTasks; ++other) {
      if (other == i) continue;
      ASSERT_THAT(Watch(SenderOf(other), 0), IsOk());
    }
    Pass(kTimeout / 2);
    if (coordinator_.State().workers(i).lost()) tasks_[i].granted = false;
  }

  void RepeatReport(int i) {
    Task& task = tasks_[i];
    task.granted = Step(SenderOf(i), task.gave_up ? 0 : task.step).granted();
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
    if (!task.granted) {
      task.granted = Step(SenderOf(i), 0).granted();
      return;
    }
    ++task.step;
    task.gave_up = false;
    reported_.emplace(i, task.incarnation, task.step);
    task.granted = Step(SenderOf(i), task.step).granted();
  }

  void CheckCounts() {
    int64_t granted = 0;
    for (const Task& task : tasks_) granted += task.granted ? 1 : 0;
    const int64_t steps = coordinator_.global_step();
    const int64_t out = coordinator_.outstanding_grants();
    ASSERT_EQ(steps, static_cast<int64_t>(reported_.size()));
    ASSERT_LE(steps + out, kStop);
    ASSERT_GE(out, granted);
    ASSERT_LE(out, kTasks);
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  std::vector<Task> tasks_ = std::vector<Task>(kTasks);
  // (task, incarnation, step)
  std::set<std::tuple<int, uint64_t, int64_t>> reported_;
};

TEST_P(CoordinatorStepsRandomTest, KeepsTheGlobalStepExact) {
  StartTasks();
  for (int call = 0; call < 5000 && coordinator_.phase() == RUNNING; ++call) {
    const int i = Pick(kTasks);
    switch (Pick(12)) {
      case 0:
        Restart(i, static_cast<uint64_t>(1000 + call));
        break;
      case 1:
        PassWithout(i);
        break;
      case 2:
        RepeatReport(i);
        break;
      case 3:
        GiveUp(i);
        break;
      default:
        TakeStep(i);
    }
    CheckCounts();
    if (HasFatalFailure()) return;
  }
  // The run comes to its end, exactly.
  EXPECT_EQ(coordinator_.global_step(), kStop);
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CoordinatorStepsRandomTest,
                         testing::Range(1, 21));

}  // namespace
}  // namespace muster
