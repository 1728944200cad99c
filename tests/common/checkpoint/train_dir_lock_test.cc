#include "common/checkpoint/train_dir_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TrainDirLockTest : public ::testing::Test {
 protected:
  TrainDirLockTest()
      : parent_(absl::StrCat(::testing::TempDir(), "/lock_", getpid())),
        dir_(parent_ + "/runs/one") {}
  ~TrainDirLockTest() override {
    unlink((dir_ + "/.lock").c_str());
    rmdir(dir_.c_str());
    rmdir((parent_ + "/runs").c_str());
    rmdir(parent_.c_str());
  }

  const std::string parent_;
  const std::string dir_;
};

TEST_F(TrainDirLockTest, MakesTheFolderAndExcludesASecondHolder) {
  auto lock = TrainDirLock::Acquire(dir_);
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(TrainDirLock::Acquire(dir_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(absl::StrCat("process ", getpid())),
                             HasSubstr(dir_))));
  lock->reset();
  EXPECT_THAT(TrainDirLock::Acquire(dir_), IsOk());
}

TEST_F(TrainDirLockTest, IsFreeAgainWhenTheHolderIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = TrainDirLock::Acquire(dir_);
    const char byte = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_THAT(TrainDirLock::Acquire(dir_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(absl::StrCat("process ", child))));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(TrainDirLock::Acquire(dir_), IsOk());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(TrainDirLockTest, NamesAFolderThatCannotBeMade) {
  EXPECT_THAT(TrainDirLock::Acquire("/dev/null/run"),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("use train_dir '/dev/null/run'"),
                             HasSubstr("'/dev/null' is a file"))));
  EXPECT_THAT(TrainDirLock::Acquire(""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
