#include "common/summary/profile_timeline.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

absl::Time At(int64_t ns) { return absl::FromUnixNanos(ns); }

TEST(ProfileTimelineTest, APart_HasItsSpansWithNamesAndLanes) {
  ProfileTimeline timeline("/job:worker/task:1");
  timeline.NameLane(1000, "send 1");
  timeline.NameLane(2, "push");
  timeline.Add({2, "push", At(5'000'000), At(9'000'000), 17});
  timeline.Add({1000, "w", At(6'000'000), At(8'000'000), 17, 4096, 99});
  const ProfilePart part = timeline.Take();
  EXPECT_EQ(part.task(), "/job:worker/task:1");
  ASSERT_EQ(part.lanes_size(), 2);
  EXPECT_EQ(part.lanes(0), "push") << "in the order of their numbers";
  ASSERT_EQ(part.events_size(), 2);
  const ProfileEvent& sent = part.events(1);
  EXPECT_EQ(part.lanes(sent.lane()), "send 1");
  EXPECT_EQ(part.names(sent.name()), "w");
  EXPECT_EQ(sent.begin_us(), 6000);
  EXPECT_EQ(sent.duration_us(), 2000);
  EXPECT_EQ(sent.step(), 17);
  EXPECT_EQ(sent.bytes(), 4096);
  EXPECT_EQ(sent.part(), 99);
  EXPECT_EQ(part.left_out(), 0);
}

TEST(ProfileTimelineTest, FractionsOfAMicrosecond_DoNotUnnestSpans) {
  ProfileTimeline timeline("a");
  timeline.NameLane(1, "lane");
  timeline.Add({1, "outer", At(1'900), At(7'100), 1});
  timeline.Add({1, "inner", At(2'000), At(7'100), 1});
  const ProfilePart part = timeline.Take();
  const auto end = [&](int i) {
    return part.events(i).begin_us() + part.events(i).duration_us();
  };
  EXPECT_LE(part.events(0).begin_us(), part.events(1).begin_us());
  EXPECT_EQ(end(0), end(1));
}

TEST(ProfileTimelineTest, SpansWithoutRoom_AreCounted) {
  constexpr int64_t kBytes = 2000;
  ProfileTimeline timeline("a", kBytes);
  timeline.NameLane(1, "lane");
  for (int i = 0; i < 200; ++i) {
    timeline.Add({1, absl::StrCat("span ", i % 10), At(1'000'000'000 + i),
                  At(2'000'000'000), i});
  }
  EXPECT_TRUE(timeline.is_full());
  const ProfilePart part = timeline.Take();
  EXPECT_GT(part.events_size(), 20);
  EXPECT_EQ(part.events_size() + part.left_out(), 200);
  EXPECT_LE(part.ByteSizeLong(), kBytes);
}

TEST(ProfileTimelineTest, ALaneWithoutRoomForItsName_HasNoSpans) {
  ProfileTimeline timeline("a", 300);
  timeline.NameLane(1, std::string(400, 'x'));
  timeline.Add({1, "span", At(0), At(1), 1});
  const ProfilePart part = timeline.Take();
  EXPECT_EQ(part.events_size(), 0);
  EXPECT_EQ(part.left_out(), 1);
}

}  // namespace
}  // namespace muster
