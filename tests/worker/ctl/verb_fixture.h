#ifndef TESTS_WORKER_CTL_VERB_FIXTURE_H_
#define TESTS_WORKER_CTL_VERB_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/train_dir.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
#include "worker/ctl/verb.h"

namespace muster {

// A train_dir "train" with whole checkpoints of steps 10 and 20, and verbs that
// see it.
class VerbFixture : public ::testing::Test {
 protected:
  VerbFixture() {
    Save(10, 1);
    Save(20, 2);
  }

  void Save(int64_t step, int64_t version) {
    EXPECT_THAT(SaveSmall(&fs_, "train", step, Retention(), version), IsOk());
  }

  static std::string Path(int64_t step) {
    return absl::StrCat("train/", CheckpointName(step));
  }

  void Damage(int64_t step, const std::string& file) {
    const std::string path = absl::StrCat(Path(step), "/", file);
    std::string contents = fs_.Contents(path);
    contents.back() = static_cast<char>(contents.back() ^ 1);
    fs_.SetContents(path, contents);
  }

  // Each look at its clock is 10 s after the last.
  VerbResult Ctl(const std::vector<std::string>& args) {
    return RunVerb(args, &fs_, {progress_.reporter(), nullptr, &clock_});
  }

  FakeFileSystem fs_{"train"};
  ReportedLines progress_;

 private:
  const TickingClock clock_{absl::Seconds(10)};
};

}  // namespace muster

#endif  // TESTS_WORKER_CTL_VERB_FIXTURE_H_
