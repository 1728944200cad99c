#include "worker/executor/lanes.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// All that was executed, in order.
class Record {
 public:
  void Add(size_t instruction) {
    absl::MutexLock lock(&mu_);
    executed_.push_back(instruction);
  }
  std::vector<size_t> executed() {
    absl::MutexLock lock(&mu_);
    return executed_;
  }

 private:
  absl::Mutex mu_;
  std::vector<size_t> executed_ ABSL_GUARDED_BY(mu_);
};

// Instructions 0 and 2 on lane 0, 1 and 3 on lane 1.
LaneSchedule TwoLanes() {
  LaneSchedule schedule;
  schedule.lanes = {{0, 2}, {1, 3}};
  schedule.waits.resize(4);
  return schedule;
}

absl::Status TellNobody(size_t /*instruction*/) { return absl::OkStatus(); }

TEST(LanesTest, LanesRunSideBySide) {
  absl::Notification first;
  absl::Notification second;
  Lanes lanes(TwoLanes(), {}, [&](size_t i) {
    // Each waits for the other lane in the midst of itself.
    if (i == 0) first.Notify();
    if (i == 1) second.Notify();
    if (i == 0) second.WaitForNotification();
    if (i == 1) first.WaitForNotification();
    return absl::OkStatus();
  });
  EXPECT_THAT(lanes.Run(&TellNobody), IsOk());
}

TEST(LanesTest, WaitsForTheEventsOfOtherLanes) {
  LaneSchedule schedule = TwoLanes();
  schedule.waits[0] = {{1, 3}};
  Record record;
  Lanes lanes(std::move(schedule), {}, [&](size_t i) {
    record.Add(i);
    return absl::OkStatus();
  });
  for (int run = 0; run < 3; ++run) EXPECT_THAT(lanes.Run(&TellNobody), IsOk());
  EXPECT_THAT(record.executed(),
              ElementsAre(1, 3, 0, 2, 1, 3, 0, 2, 1, 3, 0, 2));
}

TEST(LanesTest, TellsInThePlansOrderOfWhatIsOverWithAllBefore) {
  absl::Notification others_done;
  Record record;
  Lanes lanes(TwoLanes(), {1, 3}, [&](size_t i) {
    if (i == 0) others_done.WaitForNotification();
    record.Add(i);
    if (i == 3) others_done.Notify();
    return absl::OkStatus();
  });
  std::vector<size_t> told;
  EXPECT_THAT(lanes.Run([&](size_t i) {
    told.push_back(i);
    EXPECT_THAT(record.executed(), testing::Contains(0));
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_THAT(told, ElementsAre(1, 3));
}

TEST(LanesTest, AnErrorEndsAllLanes) {
  LaneSchedule schedule = TwoLanes();
  schedule.waits[3] = {{0, 2}};
  Record record;
  Lanes lanes(std::move(schedule), {2}, [&](size_t i) {
    record.Add(i);
    return i == 0 ? absl::AbortedError("at 0") : absl::OkStatus();
  });
  std::vector<size_t> told;
  EXPECT_EQ(lanes.Run([&](size_t i) {
    told.push_back(i);
    return absl::OkStatus();
  }),
            absl::AbortedError("at 0"));
  EXPECT_THAT(told, IsEmpty());
  EXPECT_THAT(record.executed(), testing::IsSubsetOf({0, 1}));
}

// Lane 1 waits for lane 0 before instruction 3, and is not named for it.
TEST(LanesTest, SaysWhichLaneDoesNotGoOn) {
  LaneSchedule schedule = TwoLanes();
  schedule.waits[3] = {{0, 2}};
  absl::Notification said;
  std::vector<std::pair<int, size_t>> stalled;
  LaneWatch watch;
  watch.period = absl::Milliseconds(20);
  watch.on_stalled = [&](int lane, size_t instruction) {
    stalled.emplace_back(lane, instruction);
    if (instruction == 2 && !said.HasBeenNotified()) said.Notify();
  };
  {
    const auto execute = [&](size_t i) {
      if (i == 2) said.WaitForNotification();
      return absl::OkStatus();
    };
    Lanes lanes(std::move(schedule), {}, execute, watch);
    EXPECT_THAT(lanes.Run(&TellNobody), IsOk());
  }
  EXPECT_THAT(stalled, testing::Contains(std::make_pair(0, size_t{2})));
  EXPECT_THAT(stalled, testing::Not(testing::Contains(testing::Pair(1, 3))));
}

TEST(LanesTest, AnErrorOfWhoIsToldIsReturnedAndTheNextRunIsANewOne) {
  bool fails = true;
  Lanes lanes(TwoLanes(), {0}, &TellNobody);
  const auto tell = [&](size_t /*instruction*/) {
    return fails ? absl::CancelledError("no more") : absl::OkStatus();
  };
  EXPECT_EQ(lanes.Run(tell), absl::CancelledError("no more"));
  fails = false;
  EXPECT_THAT(lanes.Run(tell), IsOk());
}

// The note, beside an instruction, that its work is done.
constexpr size_t kDone = 100;

class LateLanesTest : public testing::Test {
 protected:
  std::unique_ptr<Lanes> MakeLanes(LaneSchedule schedule,
                                   std::vector<size_t> told = {}) {
    LateWork late;
    late.begin = [this](int lane) {
      absl::MutexLock lock(&mu_);
      began_.push_back(lane);
      return absl::OkStatus();
    };
    late.finish = [this](size_t i) {
      record_.Add(kDone + i);
      return i == fails_at_ ? absl::InternalError("lost") : absl::OkStatus();
    };
    late.end = [this](int lane, bool has_failed) {
      absl::MutexLock lock(&mu_);
      ended_.emplace_back(lane, has_failed);
      return absl::OkStatus();
    };
    const auto execute = [this](size_t i) {
      record_.Add(i);
      return absl::OkStatus();
    };
    return std::make_unique<Lanes>(std::move(schedule), std::move(told),
                                   execute, LaneWatch(), std::move(late));
  }
  std::vector<int> began() {
    absl::MutexLock lock(&mu_);
    return began_;
  }
  std::vector<std::pair<int, bool>> ended() {
    absl::MutexLock lock(&mu_);
    return ended_;
  }

  // None.
  size_t fails_at_ = kDone;
  Record record_;

 private:
  absl::Mutex mu_;
  std::vector<int> began_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<int, bool>> ended_ ABSL_GUARDED_BY(mu_);
};

TEST_F(LateLanesTest, SomeWorkIsOnItsWayWhenALaneGoesOn) {
  LaneSchedule schedule;
  schedule.lanes = {{0, 1, 2, 3, 4, 5, 6}};
  schedule.waits.resize(7);
  schedule.ends_late = {true, false, true, true, true, true, true};
  EXPECT_THAT(MakeLanes(std::move(schedule))->Run(&TellNobody), IsOk());
  EXPECT_THAT(record_.executed(),
              ElementsAre(0, 1, 2, 3, 4, 5, kDone, 6, kDone + 2, kDone + 3,
                          kDone + 4, kDone + 5, kDone + 6));
  EXPECT_THAT(began(), ElementsAre(0));
  EXPECT_THAT(ended(), ElementsAre(std::pair(0, false)));
}

TEST_F(LateLanesTest, ALaneThatStandsStillSaysWhatIsDone) {
  LaneSchedule schedule = TwoLanes();
  schedule.waits[1] = {{0, 0}};
  schedule.waits[2] = {{1, 1}};
  schedule.ends_late = {true, false, false, false};
  const auto lanes = MakeLanes(std::move(schedule), {0});
  EXPECT_THAT(lanes->Run([&](size_t /*instruction*/) {
    EXPECT_THAT(record_.executed(), testing::Contains(kDone));
    return absl::OkStatus();
  }),
              IsOk());
  std::vector<size_t> executed = record_.executed();
  executed.resize(3);
  EXPECT_THAT(executed, ElementsAre(0, kDone, 1));
}

TEST_F(LateLanesTest, WorkThatFailsEndsAllLanesWhichHearOfIt) {
  LaneSchedule schedule = TwoLanes();
  schedule.waits[1] = {{0, 0}};
  schedule.ends_late = {true, false, false, false};
  fails_at_ = 0;
  EXPECT_EQ(MakeLanes(std::move(schedule))->Run(&TellNobody),
            absl::InternalError("lost"));
  EXPECT_THAT(record_.executed(), testing::Not(testing::Contains(1)));
  EXPECT_THAT(ended(), testing::UnorderedElementsAre(std::pair(0, true),
                                                     std::pair(1, true)));
}

}  // namespace
}  // namespace muster
