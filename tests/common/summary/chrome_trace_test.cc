#include "common/summary/chrome_trace.h"

#include <gtest/gtest.h>

#include <string>

#include "common/config/json.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

std::string TextOf(const JsonValue& event, absl::string_view name) {
  const JsonValue* const value = event.Find(name);
  return value == nullptr ? "" : value->text;
}

TEST(ChromeTraceTest, WritesSpansAndNamesAsJson) {
  ChromeTrace trace("worker \"1\"", 7);
  trace.NameLane(2, "pull");
  const absl::Time begin = absl::UnixEpoch() + absl::Microseconds(1500);
  trace.AddSpan(2, "pull", begin, begin + absl::Nanoseconds(2500), 17);
  const auto document = ParseJson(trace.Json());
  ASSERT_THAT(document, IsOk());
  const JsonValue* const events = document->Find("traceEvents");
  ASSERT_NE(events, nullptr);
  ASSERT_EQ(events->items.size(), 4);

  const JsonValue& process = events->items[0];
  EXPECT_EQ(TextOf(process, "ph"), "M");
  EXPECT_EQ(TextOf(process, "name"), "process_name");
  EXPECT_EQ(TextOf(*process.Find("args"), "name"), "worker \"1\"");
  EXPECT_EQ(TextOf(*events->items[1].Find("args"), "name"), "pull");

  const JsonValue& span = events->items[3];
  EXPECT_EQ(TextOf(span, "ph"), "X");
  EXPECT_EQ(TextOf(span, "name"), "pull");
  EXPECT_EQ(TextOf(span, "pid"), "7");
  EXPECT_EQ(TextOf(span, "tid"), "2");
  EXPECT_EQ(TextOf(span, "ts"), "1500.000");
  EXPECT_EQ(TextOf(span, "dur"), "2.500");
  EXPECT_EQ(TextOf(*span.Find("args"), "step"), "17");
  EXPECT_EQ(document->Find("displayTimeUnit")->text, "ms");
}

TEST(ChromeTraceTest, ATransferHasItsBytes) {
  ChromeTrace trace("worker", 7);
  const absl::Time begin = absl::UnixEpoch() + absl::Microseconds(1500);
  trace.AddTransfer(3, "w", begin, begin + absl::Microseconds(2), 17, 4096);
  const auto document = ParseJson(trace.Json());
  ASSERT_THAT(document, IsOk());
  const JsonValue& span = document->Find("traceEvents")->items.back();
  EXPECT_EQ(TextOf(span, "name"), "w");
  EXPECT_EQ(TextOf(*span.Find("args"), "step"), "17");
  EXPECT_EQ(TextOf(*span.Find("args"), "bytes"), "4096");
}

TEST(ChromeTraceTest, AnArrow_LeadsFromOneProcessToAnother) {
  ChromeTrace trace;
  trace.BeginProcess("worker", 3, "late");
  trace.NameLane(2, "send");
  trace.BeginProcess("ps", 4, "");
  const absl::Time when = absl::UnixEpoch() + absl::Microseconds(7);
  trace.AddArrow(255, {3, 2, when}, {4, 1, when + absl::Microseconds(2)});
  const auto document = ParseJson(trace.Json());
  ASSERT_THAT(document, IsOk());
  const auto& events = document->Find("traceEvents")->items;
  ASSERT_EQ(events.size(), 10);
  EXPECT_EQ(TextOf(*events[1].Find("args"), "sort_index"), "3");
  EXPECT_EQ(TextOf(*events[2].Find("args"), "labels"), "late");
  const JsonValue& from = events[8];
  EXPECT_EQ(TextOf(from, "ph"), "s");
  EXPECT_EQ(TextOf(from, "pid"), "3");
  EXPECT_EQ(TextOf(from, "tid"), "2");
  const JsonValue& to = events[9];
  EXPECT_EQ(TextOf(to, "ph"), "f");
  EXPECT_EQ(TextOf(to, "bp"), "e");
  EXPECT_EQ(TextOf(to, "id"), TextOf(from, "id"));
  EXPECT_EQ(TextOf(to, "ts"), "9.000");
}

}  // namespace
}  // namespace muster
