#include "worker/hook/stop_on_plateau.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class StopOnPlateauTest : public ::testing::Test {
 protected:
  void Step(int64_t step, double loss) {
    StepRecord record;
    record.step = step;
    record.loss = loss;
    EXPECT_THAT(hook_.AfterStep(record), IsOk());
  }

  std::vector<std::string> reasons_;
  StopOnPlateau hook_{3, [this](absl::string_view reason, const absl::Status&) {
                        reasons_.emplace_back(reason);
                      }};
};

TEST_F(StopOnPlateauTest, StopsOnceTheLossNoLongerFalls) {
  Step(1, 2.0);
  Step(2, 2.5);
  Step(3, 1.9);
  Step(4, 1.9);
  Step(5, 2.0);
  EXPECT_THAT(reasons_, SizeIs(0));
  Step(6, 1.9);
  EXPECT_THAT(reasons_, ElementsAre("plateau"));
}

TEST_F(StopOnPlateauTest, ReadmeQuotesTheWholeFile) {
  const std::string file = Read("worker/hook/stop_on_plateau.h");
  ASSERT_THAT(file, HasSubstr("class StopOnPlateau"));
  EXPECT_THAT(Read("worker/hook/README.md"),
              HasSubstr("```cpp\n" + file + "```\n"));
}

}  // namespace
}  // namespace muster
