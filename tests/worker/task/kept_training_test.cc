#include "worker/task/kept_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/checkpoint/checked_text.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "worker/checkpoint/schema_text.h"
#include "worker/client/call_status.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTraining[] = R"pb(
  model {
    input_shape: [ 2 ]
    layer {
      name: "out"
      type: "dense"
      attr { name: "units" i: 1 }
    }
    layer { name: "loss" type: "mean_squared_error" }
  }
  input { type: "synthetic" batch_size: 4 }
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.1 }
  }
  stop { steps: 3 }
  seed: 7
)pb";

class KeptTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "/keptXXXXXX";
    dir_ = mkdtemp(path.data());
  }

  KeptTraining::Options Options() {
    KeptTraining::Options options;
    options.train_dir = "run";
    options.training.set_seed(7);
    options.schema.set_format("csv");
    options.write_file = [this](const std::string& path,
                                const std::string& text) {
      written_.push_back(path + ": " + text);
      return outcome_;
    };
    options.reporter = lines_.reporter();
    return options;
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name) << text;
  }

  std::string Text() {
    const auto training = ParseTrainingSpec(kTraining, "test", {});
    EXPECT_THAT(training, IsOk());
    return KeptTrainingText(*training);
  }

  std::string dir_;
  std::vector<std::string> written_;
  absl::Status outcome_;
  ReportedLines lines_;
};

TEST_F(KeptTrainingTest, IsWrittenOnceWhenTheTrainingBegins) {
  const KeptTraining::Options options = Options();
  KeptTraining kept(options);
  EXPECT_TRUE(written_.empty());
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(written_, ElementsAre("run/schema.textproto: " +
                                        FormatSchema(options.schema),
                                    "run/training.textproto: " +
                                        KeptTrainingText(options.training)));
}

TEST_F(KeptTrainingTest, AFileThatCannotBeWrittenIsALineAndTriedAgain) {
  KeptTraining kept(Options());
  outcome_ = absl::ResourceExhaustedError("no space");
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("no space")));
  written_.clear();
  outcome_ = absl::OkStatus();
  EXPECT_THAT(kept.AfterEnter({}), IsOk());
  EXPECT_EQ(written_.size(), 2);
}

TEST_F(KeptTrainingTest, IsReadAsItWasWritten) {
  Write("training.textproto", Text());
  Write("kept_training.textproto", "an older run's");
  EXPECT_THAT(CheckCanKeepTraining(dir_), IsOk());
  const auto found = ReadKeptTraining(dir_);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->path, dir_ + "/training.textproto");
  EXPECT_EQ(KeptTrainingText(found->training), Text());
}

TEST_F(KeptTrainingTest, ThatOfAnOlderRunIsRead) {
  Write("kept_training.textproto", kTraining);
  EXPECT_THAT(CheckCanKeepTraining(dir_), IsOk());
  const auto found = ReadKeptTraining(dir_);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->training.seed(), 7);
}

TEST_F(KeptTrainingTest, WithoutOneNothingIsFound) {
  EXPECT_THAT(CheckCanKeepTraining(dir_), IsOk());
  EXPECT_THAT(ReadKeptTraining(dir_),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr(dir_ + "/training.textproto")));
}

TEST_F(KeptTrainingTest, APersonsOwnFileIsNeitherReadNorReplaced) {
  Write("training.textproto", kTraining);
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(dir_ + "/training.textproto"),
                     HasSubstr("no file that a training wrote"),
                     HasSubstr("--training=FILE")));
  EXPECT_THAT(CheckCanKeepTraining(dir_), is_refused);
  EXPECT_THAT(ReadKeptTraining(dir_), is_refused);
}

TEST_F(KeptTrainingTest, OneThatWasCutShortOrEditedIsDamaged) {
  const std::string text = Text();
  for (const std::string& damaged :
       {text.substr(0, text.size() / 2),
        absl::StrReplaceAll(text, {{"seed: 7", "seed: 8"}})}) {
    Write("training.textproto", damaged);
    const auto found = ReadKeptTraining(dir_);
    EXPECT_THAT(found, StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr("cut short or edited"),
                                      HasSubstr("--training=FILE"))));
    EXPECT_TRUE(IsOfFile(found.status()));
    EXPECT_EQ(CheckCanKeepTraining(dir_), found.status());
  }
}

TEST_F(KeptTrainingTest, OneThatIsNoTrainingAnyMoreIsNamed) {
  std::string text = Text();
  text.resize(text.rfind('#'));
  Write("training.textproto", WithCrcLine(text + "of_later: 1\n"));
  EXPECT_THAT(
      ReadKeptTraining(dir_),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr(dir_ + "/training.textproto"),
                     HasSubstr("of_later"), HasSubstr("--training=FILE"))));
}

}  // namespace
}  // namespace muster
