#include "ps_server/shard/part_recorder.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/part_number.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/fake_clock.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kMs = absl::Milliseconds(1);

class PartRecorderTest : public testing::Test {
 protected:
  PartRecorderTest() { Begin(); }

  void Begin() {
    recorder_ = std::make_unique<PartRecorder>(
        PartRecorder::Options{3, &clock_, &running_});
  }

  // A part that has waited for 5 ms.
  void BeginPush(const Sender& sender, int64_t step, int32_t part = 0) {
    recorder_->BeginTurn(
        {"push", &sender, step, part, 40, clock_.Now() - 5 * kMs});
  }
  // After a millisecond.
  void Note(const char* what) {
    clock_.Advance(kMs);
    recorder_->Note(what);
  }
  void EndTurn() {
    clock_.Advance(kMs);
    recorder_->EndTurn();
  }
  void Keep(const Sender& sender, int64_t step, int32_t part = 0) {
    BeginPush(sender, step, part);
    clock_.Advance(kMs);
    recorder_->NoteTaken(/*is_late=*/false);
    EndTurn();
  }

  // "lane: name begin-end" of each span, in milliseconds from the test's begin.
  std::vector<std::string> Take() {
    part_ = recorder_->Take();
    std::vector<std::string> spans;
    for (const ProfileEvent& event : part_.events()) {
      const int64_t begin = event.begin_us() - absl::ToUnixMicros(begun_);
      spans.push_back(absl::StrCat(part_.lanes(event.lane()), ": ",
                                   part_.names(event.name()), " ", begin / 1000,
                                   "-", (begin + event.duration_us()) / 1000));
    }
    return spans;
  }
  // The numbers of parts on a lane.
  std::vector<uint64_t> NumbersOn(const std::string& lane) const {
    std::vector<uint64_t> numbers;
    for (const ProfileEvent& event : part_.events()) {
      if (event.part() != 0 && part_.lanes(event.lane()) == lane) {
        numbers.push_back(event.part());
      }
    }
    return numbers;
  }

  FakeClock clock_;
  const absl::Time begun_ = clock_.Now();
  std::atomic<int> running_ = 0;
  std::unique_ptr<PartRecorder> recorder_;
  ProfilePart part_;
  const Sender a_ = MakeSender(0, 100);
  const Sender b_ = MakeSender(1, 101);
};

TEST_F(PartRecorderTest, APartThatIsApplied_HasItsWaitAndAllThatWasDone) {
  clock_.Advance(10 * kMs);
  BeginPush(b_, 7, 2);
  Note("check");
  clock_.Advance(2 * kMs);
  recorder_->NoteUpdate();
  recorder_->NoteTaken(/*is_late=*/false);
  EndTurn();
  EXPECT_THAT(Take(), ElementsAre("waiting 1: push of /job:worker/task:1 5-10",
                                  "shard: check 10-11", "shard: apply 11-13",
                                  "shard: answer 13-14",
                                  "shard: push of /job:worker/task:1 10-14"));
  EXPECT_EQ(part_.task(), "/job:ps/task:3");
  EXPECT_THAT(NumbersOn("shard"), ElementsAre(PartNumber(101, 7, 3, 2)));
  EXPECT_EQ(part_.events(4).step(), 7);
  EXPECT_EQ(part_.events(4).bytes(), 40);
}

TEST_F(PartRecorderTest, PartsThatWaitTogether_AreSideBySide) {
  clock_.Advance(10 * kMs);
  for (const Sender& sender : {a_, b_}) {
    BeginPush(sender, 1);
    EndTurn();
  }
  EXPECT_THAT(Take(), Contains("waiting 2: push of /job:worker/task:1 6-11"));
}

TEST_F(PartRecorderTest, ARound_HasAnUpdateForEachPartThatWasChosen) {
  clock_.Advance(10 * kMs);
  Keep(a_, 4, 0);
  Keep(a_, 4, 1);
  Keep(b_, 9);
  BeginPush(b_, 0);
  DuplicateMark chosen;
  *chosen.mutable_sender() = a_;
  chosen.set_step(4);
  for (const int32_t part : {0, 1}) chosen.add_parts(part);
  recorder_->BeginUpdate(12, {chosen});
  EndTurn();
  const std::vector<std::string> spans = Take();
  EXPECT_EQ(std::count(spans.begin(), spans.end(),
                       "updates of rounds: by /job:worker/task:0 16-17"),
            2);
  EXPECT_THAT(NumbersOn("updates of rounds"),
              ElementsAre(PartNumber(100, 4, 3, 0), PartNumber(100, 4, 3, 1)))
      << "what was not chosen is in no update";
}

TEST_F(PartRecorderTest, BetweenTwoUpdates_IsARound) {
  for (const int64_t update : {5, 6}) {
    BeginPush(a_, 0);
    recorder_->BeginUpdate(update, {});
    clock_.Advance(20 * kMs);
    recorder_->EndTurn();
  }
  EXPECT_THAT(Take(), Contains("rounds: round 0-20"));
}

TEST_F(PartRecorderTest, ALatePart_IsSaidAndLeadsNowhere) {
  BeginPush(a_, 4);
  clock_.Advance(kMs);
  recorder_->NoteTaken(/*is_late=*/true);
  EndTurn();
  EXPECT_THAT(Take(), Contains("shard: late: drop 0-1"));
  EXPECT_THAT(NumbersOn("shard"), IsEmpty());
}

TEST_F(PartRecorderTest, SavesAreShown_AlsoOneThatIsNotOver) {
  recorder_->BeginSave();
  clock_.Advance(3 * kMs);
  recorder_->EndSave();
  recorder_->EndSave();
  clock_.Advance(kMs);
  recorder_->BeginSave();
  clock_.Advance(kMs);
  EXPECT_THAT(Take(), ElementsAre("saves: save 0-3", "saves: save 4-5"));
}

TEST_F(PartRecorderTest, WhatHappensOutsideATurn_IsNotRecorded) {
  Note("check");
  recorder_->NoteUpdate();
  recorder_->NoteTaken(/*is_late=*/false);
  recorder_->BeginUpdate(3, {});
  recorder_->EndTurn();
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(PartRecorderTest, ItEndsByItselfAfterAMinute) {
  EXPECT_EQ(running_, 1);
  clock_.Advance(PartRecorder::kLongest + kMs);
  BeginPush(a_, 4);
  EXPECT_EQ(running_, 0);
  EndTurn();
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(running_, 0);
}

TEST_F(PartRecorderTest, OneThatIsDropped_RunsNoMore) {
  Begin();
  EXPECT_EQ(running_, 1);
  recorder_.reset();
  EXPECT_EQ(running_, 0);
}

}  // namespace
}  // namespace muster
