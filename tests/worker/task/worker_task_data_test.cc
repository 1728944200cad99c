// A whole worker and its data: streams, bad records, other files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/train_dir.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTraining[] = R"pb(
  model {
    name: "softmax_regression"
    input_shape: [ 2 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 3 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input { type: "csv" batch_size: 4 }
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.1 }
  }
  seed: 3
)pb";

class WorkerTaskDataTest : public LocalTraining {
 protected:
  WorkerTaskDataTest() : dir_(NewTrainDir("data")) {
    std::filesystem::create_directories(dir_);
    WriteRows("train.csv", 30);
    WriteRows("test.csv", 6);
  }

  void WriteRows(const std::string& name, int rows,
                 const std::string& bad_row = "") {
    std::ofstream file(absl::StrCat(dir_, "/", name));
    file << "x,y,label\n";
    for (int i = 0; i < rows; ++i) {
      file << i << "," << i % 7 << "," << i % 3 << "\n";
    }
    file << bad_row;
  }

  int Train(const std::string& train_dir, int steps,
            std::vector<std::string> overrides = {}) {
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    overrides.push_back(absl::StrCat("input.dir=", dir_));
    auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    if (!options.ok()) return -1;
    options->progress.every = absl::ZeroDuration();
    options->write_progress = [this](absl::string_view line) {
      reporter().Info(line);
    };
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  static std::string Parameters(const std::string& train_dir, int64_t step) {
    const std::string bytes = ReadAll(absl::StrCat(
        train_dir, "/", CheckpointName(step), "/parameters.safetensors"));
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  const std::string dir_;
};

TEST_F(WorkerTaskDataTest, AStreamGoesOnAtItsRow) {
  const std::vector<std::string> stream = {"input.stream=true",
                                           "input.shuffle_buffer=8"};
  const std::string whole = NewTrainDir("whole");
  ASSERT_EQ(Train(whole, 20, stream), kExitDone);
  // A pass has 7.5 steps; the restarts are in the middle of two of them.
  const std::string parts = NewTrainDir("parts");
  for (const int steps : {5, 13, 20}) {
    ASSERT_EQ(Train(parts, steps, stream), kExitDone);
  }
  EXPECT_EQ(Parameters(parts, 20), Parameters(whole, 20));
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("a stream of rows, 1 files"),
                                      HasSubstr(dir_))));
}

TEST_F(WorkerTaskDataTest, AStreamIsNotTakenForADataSet) {
  const std::string train_dir = NewTrainDir("other_order");
  ASSERT_EQ(Train(train_dir, 3, {"input.stream=true"}), kExitDone);
  EXPECT_NE(Train(train_dir, 6), kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("restore "),
                                      HasSubstr("'stream', wanted 'rows'"))));
}

TEST_F(WorkerTaskDataTest, SaysWhatDataItFoundAndWhatHasChanged) {
  const std::string train_dir = NewTrainDir("fresh");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  EXPECT_THAT(Lines(), Contains(HasSubstr("30 rows in 3 classes, 1 files in")));
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("not those of"))));
  WriteRows("train.csv", 40);
  ASSERT_EQ(Train(train_dir, 7), kExitDone);
  EXPECT_THAT(Lines(),
              Contains(AllOf(HasSubstr("not those of the checkpoint"),
                             HasSubstr("train.csv has "),
                             HasSubstr("there are 40 examples, were 30"))));
}

TEST_F(WorkerTaskDataTest, TrainsOnInSpiteOfBadRecords) {
  WriteRows("train.csv", 30, "1,2\n");
  WriteRows("test.csv", 6, "nan,1,1\n");
  EXPECT_EQ(Train(NewTrainDir("bad"), 8, {"input.on_bad_record=SKIP"}),
            kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("skipped a bad record"),
                                      HasSubstr("line 32 of '"))));
  EXPECT_THAT(Lines(), Contains(HasSubstr("bad_records=1")));
  EXPECT_THAT(Lines(), Contains(HasSubstr("1 of 7 rows are bad")));
}

}  // namespace
}  // namespace muster
