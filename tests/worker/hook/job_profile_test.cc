#include "worker/hook/job_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/call_table.h"
#include "common/rpc/part_number.h"
#include "common/rpc/served_calls.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A worker, and a ps task 0 whose clock is an hour ahead.
class JobProfileTest : public ::testing::Test {
 protected:
  JobProfileTest() {
    ps_.Handle(kProfileCall, [this](const ProfileRequest& request, absl::Time,
                                    const ReplyCallback<ProfileReply>& done) {
      EXPECT_EQ(request.action(), ProfileRequest::READ_CLOCK);
      if (!clock_status_.ok()) return done(clock_status_);
      ProfileReply reply;
      reply.set_now_us(absl::ToUnixMicros(clock_.Now() + absl::Hours(1)));
      done(std::move(reply));
    });
    ps_.Handle(kAddProfileCall,
               [this](const AddProfileRequest& request, absl::Time,
                      const ReplyCallback<AddProfileReply>& done) {
                 if (!add_status_.ok()) return done(add_status_);
                 added_.push_back(request);
                 done(AddProfileReply());
               });
    JobProfile::Options options;
    options.sender.mutable_task()->set_job("worker");
    options.sender.mutable_task()->set_index(1);
    options.sender.set_incarnation(101);
    options.spans = {{"conv/weights"}, 101};
    options.coordination = &ps_;
    options.job_state = [this]() -> const JobState& { return state_; };
    options.trace_devices = [this](const ProfiledSteps& steps) {
      traces_ = steps;
    };
    hook_ = std::make_unique<JobProfile>(options, &clock_, said_.reporter());
  }

  void Ask(int64_t number, int steps) {
    state_.set_profile_number(number);
    state_.set_profile_steps(steps);
  }

  // Steps of a millisecond each, of two parts.
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      ++step_;
      StepRecord record;
      record.step = step_;
      const absl::Time begin = absl::FromUnixMicros(1000 * step_);
      StepTimes& times = record.times;
      times.begun = times.read_begun = times.read = times.pull_begun =
          times.pulled = times.compute_begun = begin;
      times.computed = times.decided = begin + absl::Microseconds(600);
      times.pushed = times.ended = record.now = begin + absl::Microseconds(900);
      for (const int part : {0, 1}) {
        times.sends.push_back(
            {0, 400, times.decided, times.pushed, /*ps_task=*/1, part});
      }
      EXPECT_THAT(hook_->AfterStep(record), IsOk());
    }
  }
  // What was sent is there.
  void End() { EXPECT_THAT(hook_->AtEnd(EndRecord()), IsOk()); }

  // The steps of a part.
  static std::set<int64_t> StepsOf(const ProfilePart& part) {
    std::set<int64_t> steps;
    for (const ProfileEvent& event : part.events()) steps.insert(event.step());
    return steps;
  }

  const MonotonicClock clock_{};
  ServedCalls ps_;
  absl::Status clock_status_;
  absl::Status add_status_;
  std::vector<AddProfileRequest> added_;
  JobState state_;
  ProfiledSteps traces_;
  int64_t step_ = 0;
  ReportedLines said_;
  // Last: its thread uses the others.
  std::unique_ptr<JobProfile> hook_;
};

TEST_F(JobProfileTest, UnlessItIsAsked_ItRecordsNothing) {
  Train(3);
  EXPECT_FALSE(traces_.Has(step_));
  End();
  EXPECT_THAT(added_, IsEmpty());
}

TEST_F(JobProfileTest, Asked_ItSendsTheNextStepsOnce) {
  Train(3);
  Ask(5, 2);
  Train(1);
  EXPECT_TRUE(traces_.Has(step_ + 1)) << "known before they are computed";
  Train(4);
  EXPECT_FALSE(traces_.Has(step_ + 1));
  End();
  ASSERT_THAT(added_, SizeIs(1));
  EXPECT_EQ(added_[0].number(), 5);
  EXPECT_EQ(added_[0].sender().task().index(), 1);
  EXPECT_EQ(added_[0].part().task(), "/job:worker/task:1");
  EXPECT_THAT(StepsOf(added_[0].part()), ElementsAre(5, 6));
}

TEST_F(JobProfileTest, ItsClock_IsMeasuredWithItsError) {
  Ask(5, 1);
  EXPECT_THAT(hook_->AfterWait(0), IsOk());
  Train(1);
  End();
  ASSERT_THAT(added_, SizeIs(1));
  const ProfilePart& part = added_[0].part();
  EXPECT_GT(part.error_us(), 0);
  EXPECT_LE(std::abs(part.to_first_ps_us() -
                     absl::ToInt64Microseconds(absl::Hours(1))),
            part.error_us());
}

TEST_F(JobProfileTest, EachPartOnItsWay_HasItsNumberOnce) {
  Ask(5, 1);
  EXPECT_THAT(hook_->AfterEnter(EpochRecord()), IsOk());
  Train(1);
  End();
  ASSERT_THAT(added_, SizeIs(1));
  std::multiset<uint64_t> numbers;
  for (const ProfileEvent& event : added_[0].part().events()) {
    if (event.part() != 0) numbers.insert(event.part());
  }
  EXPECT_EQ(numbers, (std::multiset<uint64_t>{PartNumber(101, 1, 1, 0),
                                              PartNumber(101, 1, 1, 1)}));
}

TEST_F(JobProfileTest, ANewerOne_TakesThePlaceOfTheOneUnderWay) {
  Ask(5, 10);
  Train(4);
  Ask(6, 2);
  Train(4);
  End();
  ASSERT_THAT(added_, SizeIs(1));
  EXPECT_EQ(added_[0].number(), 6);
}

TEST_F(JobProfileTest, OneThatIsOver_IsNotSent) {
  Ask(5, 10);
  Train(4);
  Ask(0, 0);
  Train(10);
  EXPECT_FALSE(traces_.Has(step_));
  End();
  EXPECT_THAT(added_, IsEmpty());
}

TEST_F(JobProfileTest, AtTheEnd_ItSendsWhatThereIs) {
  Ask(5, 10);
  Train(4);
  End();
  ASSERT_THAT(added_, SizeIs(1));
  EXPECT_THAT(StepsOf(added_[0].part()), ElementsAre(2, 3, 4));
}

TEST_F(JobProfileTest, APsThatDoesNotTakeIt_IsALine) {
  for (const bool of_clock : {true, false}) {
    clock_status_ =
        of_clock ? absl::UnavailableError("it is away") : absl::OkStatus();
    add_status_ = absl::ResourceExhaustedError("no room");
    Ask(of_clock ? 5 : 6, 1);
    Train(2);
    End();
  }
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("profile 5 lacks this worker: it is away"),
                          HasSubstr("profile 6 lacks this worker: no room")));
}

}  // namespace
}  // namespace muster
