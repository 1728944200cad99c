#include "common/tls/refusal_lines.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(RefusalLinesTest, TheSameLineComesOnceAWindow) {
  FakeClock clock;
  ReportedLines said;
  RefusalLines lines(said.reporter(), &clock);
  lines.Say("a");
  lines.Say("a");
  lines.Say("b");
  clock.Advance(RefusalLines::kWindow);
  lines.Say("a");
  EXPECT_THAT(said.lines(), ElementsAre("W a", "W b", "W a"));
}

TEST(RefusalLinesTest, AFloodOfDifferentOnesIsCut) {
  FakeClock clock;
  ReportedLines said;
  RefusalLines lines(said.reporter(), &clock);
  for (int i = 0; i < 1000; ++i) lines.Say(absl::StrCat(i));
  EXPECT_THAT(said.lines(), SizeIs(RefusalLines::kMost));
}

}  // namespace
}  // namespace muster
