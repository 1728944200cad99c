#include "worker/hook/checkpoint_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/checkpoint/write_watch.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointSaverTest : public ::testing::Test {
 protected:
  void Make(const CheckpointSaver::Options& options) {
    saver_ = std::make_unique<CheckpointSaver>(
        options, [this] { return BeginSave(); }, lines_.reporter());
  }
  absl::StatusOr<PendingSave> BeginSave() {
    begun_.push_back(global_step_);
    if (!begin_error_.ok()) return begin_error_;
    PendingSave save;
    save.global_step = global_step_;
    save.write = [this, step = global_step_]() -> absl::StatusOr<std::string> {
      if (gate_ != nullptr) gate_->WaitForNotification();
      if (!write_error_.ok()) return write_error_;
      return absl::StrCat("ckpt-", step);
    };
    return save;
  }
  void Enter(bool initialized) {
    EpochRecord epoch;
    epoch.initialized = initialized;
    epoch.now = now_;
    ASSERT_THAT(saver_->AfterEnter(epoch), IsOk());
  }
  void StepTo(int64_t global_step) {
    global_step_ = global_step;
    now_ += absl::Seconds(1);
    StepRecord step;
    step.global_step = global_step;
    step.now = now_;
    ASSERT_THAT(saver_->AfterStep(step), IsOk());
  }
  absl::Status End() {
    EndRecord end;
    end.global_step = global_step_;
    return saver_->AtEnd(end);
  }

  absl::Status begin_error_;
  absl::Status write_error_;
  absl::Notification* gate_ = nullptr;
  std::vector<int64_t> begun_;
  int64_t global_step_ = 0;
  absl::Time now_ = absl::UnixEpoch();
  ReportedLines lines_;
  std::unique_ptr<CheckpointSaver> saver_;
};

TEST_F(CheckpointSaverTest, SavesAfterAnInitializationAndAtTheEnd) {
  Make({});
  Enter(/*initialized=*/true);
  StepTo(1);
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(begun_, ElementsAre(0, 1));
  EXPECT_EQ(saver_->newest(), "ckpt-1");
}

TEST_F(CheckpointSaverTest, TellsTheFolderOfTheLastSave) {
  CheckpointSaver::Options options;
  options.every_steps = 10;
  std::vector<std::string> last;
  options.after_last_save = [&last](const std::string& folder,
                                    const EndRecord& end) {
    last.push_back(absl::StrCat(folder, " ", end.global_step));
  };
  Make(options);
  Enter(/*initialized=*/false);
  StepTo(12);
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(last, ElementsAre("ckpt-12 12")) << "it was saved before";
  write_error_ = absl::UnknownError("no room");
  global_step_ = 13;
  ASSERT_FALSE(End().ok());
  EXPECT_THAT(last, ElementsAre("ckpt-12 12"));
}

TEST_F(CheckpointSaverTest, DoesNotSaveAgainWhatWasRestored) {
  Make({});
  Enter(/*initialized=*/false);
  EXPECT_THAT(begun_, IsEmpty());
}

// The job went on while no chief was there to save it.
TEST_F(CheckpointSaverTest, SavesWhatWentOnWithoutIt) {
  Make({});
  global_step_ = 7;
  EpochRecord epoch;
  epoch.attached = true;
  epoch.global_step = 7;
  ASSERT_THAT(saver_->AfterEnter(epoch), IsOk());
  saver_->WaitForWriter();
  EXPECT_EQ(saver_->newest(), "ckpt-7");
}

TEST_F(CheckpointSaverTest, SavesWhenAMultipleOfThePeriodWasPassed) {
  CheckpointSaver::Options options;
  options.every_steps = 10;
  Make(options);
  Enter(/*initialized=*/false);
  StepTo(9);
  StepTo(12);
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(begun_, ElementsAre(12));  // The end was saved already.
}

// It closes when the save before does not pause rounds any more.
TEST_F(CheckpointSaverTest, TheEndSavesARoundThatClosedLate) {
  CheckpointSaver::Options options;
  options.in_rounds = true;
  Make(options);
  Enter(/*initialized=*/true);
  saver_->WaitForWriter();
  EndRecord end;
  end.global_step = 0;
  global_step_ = 1;
  ASSERT_THAT(saver_->AtEnd(end), IsOk());
  EXPECT_EQ(saver_->newest(), "ckpt-1");
  write_error_ = absl::InternalError("written twice");
  EXPECT_THAT(End(), IsOk());
  EXPECT_THAT(begun_, ElementsAre(0, 1, 1));
}

TEST_F(CheckpointSaverTest, AnEndThatIsDiscarded_WritesNothing) {
  CheckpointSaver::Options options;
  options.every_steps = 10;
  Make(options);
  Enter(/*initialized=*/true);
  saver_->WaitForWriter();
  EndRecord end;
  end.global_step = 7;
  end.completed = end.is_discarded = true;
  ASSERT_THAT(saver_->AtEnd(end), IsOk());
  EXPECT_EQ(saver_->newest(), "ckpt-0");
}

TEST_F(CheckpointSaverTest, AStepThatWasTakenAnewIsSavedAnew) {
  CheckpointSaver::Options options;
  options.every_steps = 10;
  Make(options);
  Enter(/*initialized=*/false);
  StepTo(10);
  saver_->WaitForWriter();
  global_step_ = 5;
  Enter(/*initialized=*/false);
  global_step_ = 10;
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(begun_, ElementsAre(10, 10));
}

TEST_F(CheckpointSaverTest, SavesBySeconds) {
  CheckpointSaver::Options options;
  options.every = absl::Seconds(3);
  Make(options);
  Enter(/*initialized=*/false);
  for (int64_t step = 1; step <= 4; ++step) StepTo(step);
  EXPECT_THAT(begun_, ElementsAre(3));
}

TEST_F(CheckpointSaverTest, SavesOnRequest) {
  Make({});
  Enter(/*initialized=*/false);
  global_step_ = 1;
  absl::Notification saved;
  saver_->SaveNow([&saved](const absl::Status& status) {
    EXPECT_THAT(status, IsOk());
    saved.Notify();
  });
  saved.WaitForNotification();
  EXPECT_EQ(saver_->newest(), "ckpt-1");
  EXPECT_THAT(begun_, ElementsAre(1));
}

TEST_F(CheckpointSaverTest, TellsWhoRequestedThatASaveFailed) {
  Make({});
  Enter(/*initialized=*/false);
  begin_error_ = absl::UnavailableError("gone");
  absl::Status begun;
  saver_->SaveNow([&begun](const absl::Status& status) { begun = status; });
  EXPECT_THAT(begun, StatusIs(absl::StatusCode::kUnavailable));
  begin_error_ = absl::OkStatus();
  write_error_ = absl::ResourceExhaustedError("disk full");
  absl::Notification written;
  saver_->SaveNow([&written](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    written.Notify();
  });
  written.WaitForNotification();
  EXPECT_EQ(lines_.lines().size(), 2);
}

TEST_F(CheckpointSaverTest, TrainingGoesOnWhileWriting) {
  CheckpointSaver::Options options;
  options.every_steps = 1;
  absl::Notification gate;
  gate_ = &gate;
  Make(options);
  Enter(/*initialized=*/false);
  StepTo(1);
  StepTo(2);  // Returns although the first is still being written.
  EXPECT_THAT(begun_, ElementsAre(1));
  gate.Notify();
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(begun_, ElementsAre(1, 2));
}

TEST_F(CheckpointSaverTest, FailureIsSaidOnceForEachSaveAndTrainingGoesOn) {
  CheckpointSaver::Options options;
  options.every_steps = 1;
  Make(options);
  write_error_ = absl::ResourceExhaustedError("No space left on device");
  Enter(/*initialized=*/false);
  StepTo(1);
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kResourceExhausted,
                              HasSubstr("final save: No space left")));
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("E checkpoint at step 1")));
}

// Steps are a second apart. The checkpoint is written anew, of new values.
TEST_F(CheckpointSaverTest, AFailedSaveIsBegunAnewAfterPausesThatDouble) {
  CheckpointSaver::Options options;
  options.retry_after = absl::Seconds(2);
  Make(options);
  write_error_ = absl::UnknownError("Input/output error");
  Enter(/*initialized=*/true);
  const auto step_to = [this](int64_t step) {
    StepTo(step);
    saver_->WaitForWriter();
  };
  saver_->WaitForWriter();
  for (int64_t step = 1; step <= 13; ++step) step_to(step);
  EXPECT_THAT(begun_, ElementsAre(0, 2, 6));
  write_error_ = absl::OkStatus();
  for (int64_t step = 14; step <= 30; ++step) step_to(step);
  EXPECT_THAT(begun_, ElementsAre(0, 2, 6, 14));
  EXPECT_EQ(saver_->newest(), "ckpt-14");
}

TEST_F(CheckpointSaverTest, TheFinalSaveIsBegunAnewOnceUnlessTheDiskIsFull) {
  Make({});
  Enter(/*initialized=*/false);
  StepTo(1);
  write_error_ = absl::UnknownError("Input/output error");
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(begun_, ElementsAre(1, 1));
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("saving once more")));
  write_error_ = absl::ResourceExhaustedError("No space left on device");
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(begun_, ElementsAre(1, 1, 1));
}

TEST_F(CheckpointSaverTest, TheFinalSaveTellsAFileFromAPeer) {
  Make({});
  Enter(/*initialized=*/false);
  StepTo(1);
  write_error_ = OfFile(absl::NotFoundError("'train' is gone"));
  EXPECT_TRUE(IsOfFile(End()));
  write_error_ = absl::NotFoundError("a ps has forgotten us");
  EXPECT_FALSE(IsOfFile(End()));
}

TEST_F(CheckpointSaverTest, LostShardAtBeginIsSaidAndPassedOver) {
  Make({});
  begin_error_ = absl::UnavailableError("ps gone");
  Enter(/*initialized=*/true);
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("ps gone")));
}

TEST_F(CheckpointSaverTest, AFolderThatIsAnothers_EndsTheTraining) {
  CheckpointSaver::Options options;
  options.every_steps = 1;
  Make(options);
  Enter(/*initialized=*/false);
  begin_error_ = OfFile(absl::AlreadyExistsError("another process writes"));
  StepRecord step;
  step.global_step = 1;
  EXPECT_TRUE(IsTaken(saver_->AfterStep(step)));
  EXPECT_TRUE(IsTaken(End()));
  EXPECT_THAT(begun_, ElementsAre(0, 0)) << "not tried again";
}

TEST_F(CheckpointSaverTest, AFolderFoundTakenByARequest_EndsTheTraining) {
  Make({});
  Enter(/*initialized=*/false);
  begin_error_ = OfFile(absl::AlreadyExistsError("another process writes"));
  saver_->SaveNow(
      [](const absl::Status& status) { EXPECT_TRUE(IsTaken(status)); });
  EXPECT_TRUE(IsTaken(saver_->AfterStep(StepRecord())));
}

// Time passes when somebody waits for it.
class LeapingClock : public FakeClock {
 public:
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (timeout == absl::InfiniteDuration()) {
      return FakeClock::Await(mu, condition, timeout);
    }
    if (condition.Eval()) return true;
    const_cast<LeapingClock*>(this)->Advance(timeout);
    return false;
  }
};

TEST_F(CheckpointSaverTest, ASaveThatHangs_IsSaidAndReportedWhileItHangs) {
  const LeapingClock clock;
  absl::Mutex mu;
  std::vector<std::string> reported;
  WriteWatch::Options watched;
  watched.clock = &clock;
  watched.limit = absl::Seconds(15);
  watched.reporter = lines_.reporter();
  watched.report = [&](const std::string& overdue) {
    absl::MutexLock lock(&mu);
    reported.push_back(overdue);
  };
  WriteWatch watch(std::move(watched));
  CheckpointSaver::Options options;
  options.watch = &watch;
  absl::Notification gate;
  gate_ = &gate;
  Make(options);
  global_step_ = 400;
  saver_->SaveNow([](const absl::Status&) {});
  lines_.Await(3);
  gate.Notify();
  saver_->WaitForWriter();
  const auto is_over = [&reported] { return reported.back().empty(); };
  absl::MutexLock lock(&mu, absl::Condition(&is_over));
  EXPECT_THAT(reported.front(),
              HasSubstr("the save of step 400, which has taken 15 s"));
  const std::vector<std::string> lines = lines_.lines();
  EXPECT_THAT(std::vector<std::string>(lines.begin(), lines.begin() + 3),
              ElementsAre(HasSubstr("W The save of step 400 has taken 10 s"),
                          HasSubstr("W The save of step 400 has taken 40 s"),
                          HasSubstr("W The save of step 400 has taken 70 s")));
}

}  // namespace
}  // namespace muster
