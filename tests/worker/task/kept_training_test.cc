#include "worker/task/kept_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeptTrainingTest : public ::testing::Test {
 protected:
  KeptTraining::Options Options() {
    KeptTraining::Options options;
    options.train_dir = "run";
    options.training.set_seed(7);
    options.write_file = [this](const std::string& path,
                                const std::string& text) {
      written_.push_back(path + ": " + text);
      return outcome_;
    };
    options.reporter = lines_.reporter();
    return options;
  }

  std::vector<std::string> written_;
  absl::Status outcome_;
  ReportedLines lines_;
};

TEST_F(KeptTrainingTest, IsWrittenOnceWhenTheTrainingBegins) {
  KeptTraining kept(Options());
  EXPECT_TRUE(written_.empty());
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(written_, ElementsAre("run/kept_training.textproto: seed: 7\n"));
}

TEST_F(KeptTrainingTest, AFileThatCannotBeWrittenIsALineAndTriedAgain) {
  KeptTraining kept(Options());
  outcome_ = absl::ResourceExhaustedError("no space");
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("no space")));
  outcome_ = absl::OkStatus();
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_EQ(written_.size(), 2);
}

}  // namespace
}  // namespace muster
