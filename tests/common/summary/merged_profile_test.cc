#include "common/summary/merged_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/config/json.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfilePart MakePart(const std::string& task, int64_t to_first_ps_us = 0,
                     int64_t error_us = 0) {
  ProfilePart part;
  part.set_task(task);
  part.set_to_first_ps_us(to_first_ps_us);
  part.set_error_us(error_us);
  part.add_lanes("lane");
  part.add_names("span");
  return part;
}

ProfileEvent* AddEvent(ProfilePart* part, int64_t begin_us, int64_t duration_us,
                       uint64_t number = 0) {
  ProfileEvent* const event = part->add_events();
  event->set_begin_us(begin_us);
  event->set_duration_us(duration_us);
  event->set_part(number);
  return event;
}

// The events of kind `ph`, each the texts of its `fields`.
std::vector<std::vector<std::string>> Events(
    const std::string& json, const std::string& ph,
    const std::vector<std::string>& fields) {
  std::vector<std::vector<std::string>> found;
  const auto document = ParseJson(json);
  EXPECT_THAT(document, IsOk());
  for (const JsonValue& event : document->Find("traceEvents")->items) {
    if (event.Find("ph")->text != ph) continue;
    std::vector<std::string> texts;
    for (const std::string& field : fields) {
      const JsonValue* const value = event.Find(field);
      texts.push_back(value == nullptr ? "?" : value->text);
    }
    found.push_back(texts);
  }
  return found;
}

std::vector<std::string> Processes(const std::string& json) {
  std::vector<std::string> names;
  const auto document = ParseJson(json);
  for (const JsonValue& event : document->Find("traceEvents")->items) {
    if (event.Find("name")->text != "process_name") continue;
    names.push_back(event.Find("args")->Find("name")->text);
  }
  return names;
}

TEST(MergedProfileTest, Tasks_StandInOrderWithPsTasksFirst) {
  const std::string json = MergeProfile(
      {MakePart("/job:worker/task:10"), MakePart("/job:worker/task:9"),
       MakePart("/job:ps/task:1"), MakePart("/job:ps/task:0")},
      {"/job:worker/task:3: lost"});
  EXPECT_THAT(
      Processes(json),
      ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:9",
                  "/job:worker/task:10", "/job:worker/task:3: lost"));
}

TEST(MergedProfileTest, Spans_AreOnTheClockOfTheFirstPs) {
  ProfilePart ps = MakePart("/job:ps/task:0");
  AddEvent(&ps, 1000, 30);
  ProfilePart worker = MakePart("/job:worker/task:0", -4000, 25);
  AddEvent(&worker, 5010, 7);
  const std::string json = MergeProfile({ps, worker}, {});
  EXPECT_THAT(Events(json, "X", {"pid", "ts", "dur"}),
              ElementsAre(ElementsAre("0", "1000.000", "30.000"),
                          ElementsAre("1", "1010.000", "7.000")));
  EXPECT_THAT(json, HasSubstr("clock within 25 us"));
}

TEST(MergedProfileTest, AnArrow_LeadsFromAPushToItsUpdate) {
  ProfilePart ps = MakePart("/job:ps/task:0");
  AddEvent(&ps, 1000, 30, 77);
  AddEvent(&ps, 1100, 30, 78);
  ProfilePart worker = MakePart("/job:worker/task:0", 100);
  AddEvent(&worker, 850, 7, 77);
  AddEvent(&worker, 860, 7, 79);
  const std::string json = MergeProfile({worker, ps}, {});
  EXPECT_THAT(Events(json, "s", {"id", "pid", "ts"}),
              ElementsAre(ElementsAre("4d", "1", "950.000")))
      << "an end alone is no arrow";
  EXPECT_THAT(Events(json, "f", {"id", "pid", "ts", "bp"}),
              ElementsAre(ElementsAre("4d", "0", "1000.000", "e")));
}

TEST(MergedProfileTest, EventsThatMakeNoSense_AreLeftOut) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ProfilePart part = MakePart("/job:worker/task:\"0\n", kMost, -kMost);
  AddEvent(&part, 10, 1)->set_name(1);
  AddEvent(&part, 10, 1)->set_name(-1);
  AddEvent(&part, 10, 1)->set_lane(7);
  AddEvent(&part, 10, -1);
  AddEvent(&part, -10, 1);
  AddEvent(&part, kMost, kMost);
  const std::string json = MergeProfile({part}, {});
  EXPECT_THAT(Events(json, "X", {"ts"}), IsEmpty());
  AddEvent(&part, 10, 1);
  EXPECT_EQ(Events(MergeProfile({part}, {}), "X", {"ts"}).size(), 1);
}

TEST(MergedProfileTest, SpansThatFoundNoRoom_AreSaid) {
  ProfilePart part = MakePart("/job:worker/task:0");
  part.set_left_out(12);
  EXPECT_THAT(MergeProfile({part}, {}), HasSubstr("12 spans"));
}

TEST(MergedProfileTest, TheWorstClockError_IsOfTheTwoWorstTogether) {
  EXPECT_EQ(WorstClockError({}), 0);
  EXPECT_EQ(WorstClockError({MakePart("a", 0, 20), MakePart("b", 0, 50),
                             MakePart("c", 0, 30), MakePart("d", 0, -5)}),
            80);
}

}  // namespace
}  // namespace muster
