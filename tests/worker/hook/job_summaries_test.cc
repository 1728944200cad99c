#include "worker/hook/job_summaries.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/cluster/task_id.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/hook/written_summaries.h"

namespace muster {
namespace {

using Done = std::function<void(absl::StatusOr<JobState>)>;

// Two workers that have taken so many steps of 10 rows, with staleness 1 and 3.
JobState StateAt(int64_t steps0, int64_t steps1, int64_t epoch = 1) {
  JobState state;
  state.set_model_epoch(epoch);
  state.set_global_step(steps0 + steps1);
  for (const int i : {0, 1}) {
    WorkerState* const worker = state.add_workers();
    *worker->mutable_sender()->mutable_task() = MakeTaskId(kWorkerJob, i);
    const int64_t steps = i == 0 ? steps0 : steps1;
    worker->set_steps(steps);
    worker->set_examples(10 * steps);
    worker->set_staleness_count(steps);
    worker->set_staleness_sum((i == 0 ? 1 : 3) * steps);
  }
  for (const int64_t count : {int64_t{0}, steps0, int64_t{0}, steps1}) {
    state.add_staleness_counts(count);
  }
  return state;
}

// Carries `meanwhile` out in a wait, which then is over: nothing depends on how
// fast a thread is.
class WaitingClock : public FakeClock {
 public:
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waited = timeout;
    mu->Unlock();
    if (meanwhile) meanwhile();
    mu->Lock();
    return condition.Eval();
  }

  std::function<void()> meanwhile;
  // The time limit of the newest wait.
  mutable absl::Duration waited;
};

class JobSummariesTest : public ::testing::Test {
 protected:
  JobSummariesTest() {
    hook_ = std::make_unique<JobSummaries>(
        100, &clock_, [this](Done done) { asked_.push_back(std::move(done)); },
        written_.Writer());
  }
  void Enter(int64_t global_step, int64_t epoch = 1) {
    EpochRecord record;
    record.global_step = global_step;
    record.model_epoch = epoch;
    EXPECT_THAT(hook_->AfterEnter(record), IsOk());
  }
  void Step(int64_t global_step) {
    StepRecord step;
    step.global_step = global_step;
    EXPECT_THAT(hook_->AfterStep(step), IsOk());
  }

  WaitingClock clock_;
  std::vector<Done> asked_;
  WrittenSummaries written_;
  std::unique_ptr<JobSummaries> hook_;
};

TEST_F(JobSummariesTest, WritesRatesBetweenTwoAnswers) {
  Enter(10);
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0](StateAt(10, 0));
  clock_.Advance(absl::Seconds(4));
  Step(100);
  ASSERT_EQ(asked_.size(), 2u);
  asked_[1](StateAt(70, 40));
  EXPECT_TRUE(written_.points.empty());
  Step(111);
  ASSERT_EQ(written_.points.size(), 1u);
  // The step of the counts, not that in which they came.
  EXPECT_EQ(written_.points[0].step, 110);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "steps_per_s"), 25);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "examples_per_s"), 250);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "worker_0/steps_per_s"), 15);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "worker_1/steps_per_s"), 10);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "worker_1/examples_per_s"), 100);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "worker_1/staleness"), 3);
  EXPECT_FLOAT_EQ(written_.HistogramCount(0, "staleness"), 100);
}

TEST_F(JobSummariesTest, AnAnswerAtOnceIsWrittenAtOnce) {
  hook_ = std::make_unique<JobSummaries>(
      100, &clock_, [](const Done& done) { done(StateAt(100, 0)); },
      written_.Writer());
  Enter(0);
  Step(1);
  clock_.Advance(absl::Seconds(1));
  Step(100);
  EXPECT_EQ(written_.points.size(), 1u);
}

TEST_F(JobSummariesTest, AsksOnceAtATime) {
  Enter(0);
  Step(100);
  Step(200);
  EXPECT_EQ(asked_.size(), 1u);
  asked_[0](absl::UnavailableError("gone"));
  Step(300);
  EXPECT_EQ(asked_.size(), 2u);
  EXPECT_TRUE(written_.points.empty());
}

TEST_F(JobSummariesTest, LeavesOutTheCountsOfAnotherEpoch) {
  Enter(0);
  asked_[0](StateAt(0, 0));
  Step(100);
  Enter(50, /*epoch=*/2);
  clock_.Advance(absl::Seconds(1));
  asked_[1](StateAt(100, 0));
  Step(51);
  EXPECT_TRUE(written_.points.empty());

  // Those of the new one are written.
  Step(150);
  ASSERT_EQ(asked_.size(), 3u);
  asked_[2](StateAt(100, 50, /*epoch=*/2));
  clock_.Advance(absl::Seconds(1));
  Step(250);
  ASSERT_EQ(asked_.size(), 4u);
  asked_[3](StateAt(200, 50, /*epoch=*/2));
  Step(251);
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].step, 250);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "steps_per_s"), 100);
}

TEST_F(JobSummariesTest, TheEndWaitsForTheCountsOfTheLastStep) {
  Enter(0);
  asked_[0](StateAt(0, 0));
  clock_.Advance(absl::Seconds(1));
  Step(100);
  ASSERT_EQ(asked_.size(), 2u);
  clock_.meanwhile = [&] { asked_[1](StateAt(60, 40)); };
  EXPECT_THAT(hook_->AtEnd(EndRecord()), IsOk());
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].step, 100);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "steps_per_s"), 100);
}

TEST_F(JobSummariesTest, TheEndDoesNotWaitForEverForAPsThatIsGone) {
  Enter(0);
  asked_[0](StateAt(0, 0));
  clock_.Advance(absl::Seconds(1));
  Step(100);
  EXPECT_THAT(hook_->AtEnd(EndRecord()), IsOk());
  EXPECT_EQ(clock_.waited, absl::Seconds(1));
  EXPECT_TRUE(written_.points.empty());
}

TEST_F(JobSummariesTest, AnAnswerMayComeAfterTheEnd) {
  Enter(0);
  hook_.reset();
  asked_[0](StateAt(1, 1));
  EXPECT_TRUE(written_.points.empty());
}

TEST_F(JobSummariesTest, AnIdleWorkerHasNoStaleness) {
  Summary summary;
  const absl::Time start = absl::UnixEpoch();
  AddJobSummaries({StateAt(5, 5), start},
                  {StateAt(5, 5), start + absl::Seconds(1)}, &summary);
  // Steps and examples of the job and of each worker.
  EXPECT_EQ(summary.value_size(), 6);
  for (const Summary::Value& value : summary.value()) {
    EXPECT_EQ(value.tag().find("staleness"), std::string::npos) << value.tag();
    EXPECT_EQ(value.tensor().float_val(0), 0) << value.tag();
  }
}

}  // namespace
}  // namespace muster
