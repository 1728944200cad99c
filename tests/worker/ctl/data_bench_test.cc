#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string WriteTraining() {
  const std::string dir = testing::TempDir();
  std::ofstream(dir + "/train.csv") << "x,y,label\n1,0,0\n3,4,2\n2,2,1\n";
  const std::string path = dir + "/training.textproto";
  std::ofstream(path) << absl::StrCat(R"(
    model {
      name: "tiny"
      input_shape: [2]
      layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
      layer { name: "loss" type: "softmax_cross_entropy" }
    }
    input {
      type: "csv" batch_size: 2 threads: 2
      map { type: "normalize" attr { name: "mean" s: "2" }
                              attr { name: "std" s: "1" } }
      dir: ")",
                                      dir, R"("
    }
    optimizer { name: "sgd" }
    stop { steps: 4 }
  )");
  return path;
}

class DataBenchTest : public ::testing::Test {
 protected:
  VerbResult Bench(const std::string& flag) {
    return RunVerb({"data", "bench", "--training=" + training_, flag}, nullptr);
  }
  const std::string training_ = WriteTraining();
};

TEST_F(DataBenchTest, HasALineForEachStage) {
  for (const char* const stream : {"false", "true"}) {
    const VerbResult result =
        RunVerb({"data", "bench", "--training=" + training_, "--seconds=0.001",
                 absl::StrCat("--set=input.stream=", stream)},
                nullptr);
    EXPECT_EQ(result.exit_code, kExitDone) << result.error;
    EXPECT_THAT(
        result.out,
        ContainsRegex("read +[1-9][0-9]* examples/s, 1 thread\n"
                      "map normalize +[1-9][0-9]* examples/s, 1 thread\n"
                      "batches of 2 +[1-9][0-9]* examples/s, 2 threads\n"));
  }
}

TEST_F(DataBenchTest, NamesWhatIsWrong) {
  for (const char* const seconds : {"0", "-1", "nan", "soon", "1e9"}) {
    const VerbResult result = Bench(absl::StrCat("--seconds=", seconds));
    EXPECT_EQ(result.exit_code, kExitBadConfig);
    EXPECT_THAT(result.error, HasSubstr("--seconds")) << seconds;
  }
  const VerbResult result = Bench("--set=input.dir=/nowhere");
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace muster
