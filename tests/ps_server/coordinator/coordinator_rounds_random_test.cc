// Random calls of a few workers, with deaths, restarts, repeats, abandonments
// and holds, against a plain model of what must hold after each.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rows/row_ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"

namespace muster {
namespace {

constexpr int kTasks = 4;
constexpr int64_t kStop = 60;
constexpr int kMaxCalls = 20000;

// A worker as it sees itself.
struct Task {
  uint64_t incarnation = 0;
  int64_t step = 0;      // the newest that it reported or gave up
  int64_t reported = 0;  // the newest that it reported
  int64_t reported_round = 0;
  bool granted = false;
  int64_t round = 0;  // of the grant
  RowLease lease;     // likewise
};

class RandomJob : protected CoordinatorJob {
 protected:
  RandomJob(int seed, const ReplicationSpec& spec) : random_(seed) {
    Start(kTasks, spec, StopAtStep(kStop));
    for (int i = 0; i < kTasks; ++i) tasks_[i].incarnation = 100 + i;
  }
  virtual ~RandomJob() = default;

  int Pick(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }
  Sender SenderOf(int i) const { return MakeSender(i, tasks_[i].incarnation); }

  virtual void BeforeReport(int /*i*/, int64_t /*step*/, int64_t /*round*/) {}
  virtual void OnGrant(int /*i*/, const StepReply& /*reply*/) {}
  virtual void OnReplace(int /*i*/) {}

  // Takes the answers that have come.
  void Look() {
    for (int i = 0; i < kTasks; ++i) {
      const auto reply = Take(SenderOf(i));
      if (!reply.has_value()) continue;
      tasks_[i].granted = reply->granted();
      tasks_[i].round = reply->token().round();
      if (!reply->granted()) continue;
      ASSERT_GT(reply->leases_size(), 0);
      tasks_[i].lease = reply->leases(0);
      OnGrant(i, *reply);
    }
  }

  void Say(int i, int64_t step, int64_t round) {
    const uint64_t id = Number(SenderOf(i));
    StepRequest request = MakeStep(SenderOf(i), step, round);
    request.set_leases_ahead(1);
    if (step > 0) *request.mutable_rows() = tasks_[i].lease;
    ASSERT_THAT(Send(request, id), IsOk());
  }

  void Report(int i) {
    Task& task = tasks_[i];
    task.reported = ++task.step;
    task.reported_round = task.round;
    task.granted = false;
    BeforeReport(i, task.step, task.round);
    Say(i, task.step, task.round);
  }

  void Abandon(int i) {
    Task& task = tasks_[i];
    StepRequest request = MakeStep(SenderOf(i), ++task.step);
    request.set_abandoned(true);
    ASSERT_THAT(Send(request, 1), IsOk());
    task.granted = false;
  }

  void Restart(int i) {
    tasks_[i] = Task();
    tasks_[i].incarnation = next_incarnation_++;
    OnReplace(i);
    Register(SenderOf(i));
  }

  // Everybody but `silent` beats while a worker's timeout passes by half.
  void PassTime(int silent) {
    BeforeTimePasses();
    std::vector<Sender> alive;
    for (int i = 0; i < kTasks; ++i) {
      if (i != silent) alive.push_back(SenderOf(i));
    }
    Pass(kTimeout * 0.6, alive);
  }

  // One random call. Task 0, the chief, neither dies nor is silent.
  void Call() {
    const int i = Pick(kTasks);
    Task& task = tasks_[i];
    switch (Pick(14)) {
      case 0:
        if (i != 0) return Restart(i);
        break;
      case 1:
        if (i != 0) return PassTime(i);
        break;
      case 2:  // a repeat of the last report
        return Say(i, task.reported, task.reported_round);
      case 3:
        if (task.granted) return Abandon(i);
        break;
      case 4:
        return CallOfChief();
      default:
        if (task.granted) return Report(i);
        return Say(i, task.reported, task.reported_round);
    }
  }
  virtual void CallOfChief() {}
  virtual void BeforeTimePasses() {}

  std::mt19937 random_;
  Task tasks_[kTasks];
  uint64_t next_incarnation_ = 1000;
};

// ---- Rounds -------------------------------------------------------------

class RandomRoundsTest : public testing::TestWithParam<int>,
                         protected RandomJob {
 protected:
  static constexpr int kAggregate = 3;
  static constexpr int kLeast = 2;

  RandomRoundsTest()
      : RandomJob(GetParam(), MakeSyncSpec(kAggregate, kTasks, kLeast)) {}

  void BeforeReport(int i, int64_t step, int64_t round) override {
    if (round == coordinator().global_step() + 1) {
      delivered_[round].insert({i, step});
      rows_[round][i] = tasks_[i].lease;
    }
  }
  void OnReplace(int i) override {
    auto& open = delivered_[coordinator().global_step() + 1];
    for (auto it = open.begin(); it != open.end();) {
      it = it->first == i ? open.erase(it) : std::next(it);
    }
  }

  void OnGrant(int /*i*/, const StepReply& reply) override {
    StepToken token = reply.token();
    token.clear_chosen_step();  // each worker's own
    ASSERT_EQ(token.round(), coordinator().global_step() + 1);
    const int64_t closed = token.round() - 1;
    const auto [known, is_new] =
        tokens_.emplace(closed, token.SerializeAsString());
    ASSERT_EQ(known->second, token.SerializeAsString())
        << "two sets of workers for one update";
    if (!is_new || closed == 0) return;
    std::set<int> distinct;
    for (const ChosenStep& step : token.chosen()) {
      const int task = step.sender().task().index();
      ASSERT_TRUE(distinct.insert(task).second);
      ASSERT_EQ(delivered_[closed].count({task, step.step()}), 1)
          << "chosen, but not delivered";
      Train(rows_[closed][task]);
    }
    ASSERT_EQ(token.chosen_size(), needed_[closed]);
    chosen_ += token.chosen_size();
  }

  void Train(const RowLease& lease) {
    for (int64_t k = 0; k < NumRows(lease); ++k) {
      ASSERT_TRUE(trained_.insert(PlaceOf(lease, k)).second)
          << "row " << PlaceOf(lease, k) << " is in two updates";
    }
  }

  // What is not trained on is in the ledger, and nothing else.
  void CheckRows(const PauseRoundsReply& last) {
    for (const ChosenStep& step : last.token().chosen()) {
      Train(rows_[last.token().round() - 1][step.sender().task().index()]);
    }
    int64_t undone = 0;
    for (const RowRange& range : last.ledger().undone()) {
      undone += range.rows();
      for (int64_t k = 0; k < range.rows(); ++k) {
        ASSERT_EQ(trained_.count(range.first() + k), 0u);
      }
    }
    ASSERT_EQ(last.ledger().front() - undone,
              static_cast<int64_t>(trained_.size()));
  }

  void CallOfChief() override { ASSERT_THAT(Hold(Pick(2) == 0), IsOk()); }

  // A hold that ends by itself would do so while time passes.
  void BeforeTimePasses() override {
    ASSERT_THAT(Hold(false), IsOk());
    NoteClosed();
  }

  // Notes how many gradients the update that was just made must have.
  void NoteClosed() {
    const int64_t now = coordinator().global_step();
    ASSERT_LE(now, noted_ + 1) << "two updates at once";
    if (now == noted_) return;
    noted_ = now;
    std::set<int> members;
    const JobState state = coordinator().State();
    for (const WorkerState& worker : state.workers()) {
      if (!worker.lost() && !worker.finished()) {
        members.insert(worker.sender().task().index());
      }
    }
    for (const auto& [task, step] : delivered_[now]) members.insert(task);
    needed_[now] = std::max<int64_t>(
        kLeast, std::min<int64_t>(kAggregate, members.size()));
  }

  std::map<int64_t, std::set<std::pair<int, int64_t>>> delivered_;
  std::map<int64_t, std::map<int, RowLease>> rows_;  // by round and task
  std::set<int64_t> trained_;
  std::map<int64_t, int64_t> needed_;
  std::map<int64_t, std::string> tokens_;
  int64_t noted_ = 0;
  int64_t chosen_ = 0;
};

TEST_P(RandomRoundsTest, EachUpdateHasTheRightWorkersOnce) {
  for (int i = 0; i < kMaxCalls && coordinator().phase() == RUNNING; ++i) {
    Call();
    NoteClosed();
    Look();
    if (HasFatalFailure()) return;
    ASSERT_LE(coordinator().outstanding_grants(), 1);
    ASSERT_LE(coordinator().global_step() + coordinator().outstanding_grants(),
              kStop);
  }
  EXPECT_EQ(coordinator().global_step(), kStop);
  EXPECT_EQ(coordinator().phase(), STOPPING);
  EXPECT_EQ(static_cast<int64_t>(tokens_.size()), kStop);
  int64_t counted = 0;
  const JobState state = coordinator().State();
  for (const WorkerState& worker : state.workers()) counted += worker.steps();
  const auto last = Hold(true);
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(counted, chosen_ + last->token().chosen_size());
  CheckRows(*last);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRoundsTest, testing::Range(1, 41));

// ---- Clocks -------------------------------------------------------------

class RandomClocksTest : public testing::TestWithParam<int>,
                         protected RandomJob {
 protected:
  static constexpr int kBound = 2;

  RandomClocksTest() : RandomJob(GetParam(), MakeBoundedSpec(kBound)) {
    for (int i = 0; i < kTasks; ++i) clocks_[i] = 0;
  }

  // Who takes part now; newcomers start at the slowest clock.
  void SeeMembers() {
    const JobState state = coordinator().State();
    std::set<int> live;
    for (const WorkerState& worker : state.workers()) {
      if (!worker.lost()) live.insert(worker.sender().task().index());
    }
    for (auto it = clocks_.begin(); it != clocks_.end();) {
      it = live.count(it->first) == 0 ? clocks_.erase(it) : std::next(it);
    }
    const int64_t slowest = Slowest();
    for (const int i : live) clocks_.try_emplace(i, slowest);
  }
  int64_t Slowest() const {
    int64_t slowest = clocks_.begin()->second;
    for (const auto& [i, clock] : clocks_) slowest = std::min(slowest, clock);
    return slowest;
  }

  // A worker that was lost is back with the report.
  void BeforeReport(int i, int64_t /*step*/, int64_t /*round*/) override {
    clocks_.try_emplace(i, Slowest());
    ++clocks_[i];
  }
  void OnReplace(int i) override {
    clocks_.erase(i);
    clocks_.emplace(i, Slowest());
  }
  void OnGrant(int i, const StepReply& /*reply*/) override {
    SeeMembers();
    ASSERT_LE(clocks_[i] - Slowest(), kBound) << "task " << i;
    largest_lag_ = std::max(largest_lag_, clocks_[i] - Slowest());
  }

  std::map<int, int64_t> clocks_;
  int64_t largest_lag_ = 0;
};

TEST_P(RandomClocksTest, NoStepStartsAboveTheBound) {
  for (int i = 0; i < kMaxCalls && coordinator().phase() == RUNNING; ++i) {
    Call();
    SeeMembers();
    Look();
    if (HasFatalFailure()) return;
    ASSERT_LE(coordinator().global_step() + coordinator().outstanding_grants(),
              kStop);
  }
  EXPECT_EQ(coordinator().global_step(), kStop);
  EXPECT_EQ(largest_lag_, kBound) << "the bound was never reached";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomClocksTest, testing::Range(1, 41));

}  // namespace
}  // namespace muster
