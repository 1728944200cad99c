#include "common/checkpoint/train_dir_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TrainDirLockTest : public ::testing::Test {
 protected:
  TrainDirLockTest()
      : parent_(absl::StrCat(::testing::TempDir(), "/lock_", getpid())),
        dir_(parent_ + "/runs/one") {}
  ~TrainDirLockTest() override {
    unlink((dir_ + "/.lock").c_str());
    unlink((dir_ + "/chief").c_str());
    rmdir(dir_.c_str());
    rmdir((parent_ + "/runs").c_str());
    rmdir(parent_.c_str());
  }

  const std::string parent_;
  const std::string dir_;
};

TEST_F(TrainDirLockTest, MakesTheFolderAndExcludesASecondHolder) {
  auto lock = TrainDirLock::Acquire(dir_, {});
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(TrainDirLock::Acquire(dir_, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(absl::StrCat("process ", getpid())),
                             HasSubstr(dir_))));
  lock->reset();
  EXPECT_THAT(TrainDirLock::Acquire(dir_, {}), IsOk());
}

TEST_F(TrainDirLockTest, IsFreeAgainWhenTheHolderIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = TrainDirLock::Acquire(dir_, {});
    const char byte = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_THAT(TrainDirLock::Acquire(dir_, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(absl::StrCat("process ", child))));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(TrainDirLock::Acquire(dir_, {}), IsOk());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(TrainDirLockTest, NamesAFolderThatCannotBeMade) {
  EXPECT_THAT(TrainDirLock::Acquire("/dev/null/run", {}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("use train_dir '/dev/null/run'"),
                             HasSubstr("'/dev/null' is a file"))));
  EXPECT_THAT(TrainDirLock::Acquire("", {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Where the file system has no locks.
class TrainDirMarkTest : public TrainDirLockTest {
 protected:
  TrainDirMarkTest() { error_ = ENOTSUP; }

  auto Acquire(uint64_t incarnation) {
    TrainDirLock::Options options;
    options.incarnation = incarnation;
    options.reporter = lines_.reporter();
    options.flock = [](int, int) {
      errno = error_;
      return -1;
    };
    return TrainDirLock::Acquire(dir_, options);
  }

  static int error_;
  ReportedLines lines_;
};

int TrainDirMarkTest::error_ = 0;

TEST_F(TrainDirMarkTest, WithoutLocks_IsSaidOnceAndHeld) {
  for (const int error : {ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL}) {
    error_ = error;
    lines_.Clear();
    const auto lock = Acquire(1);
    ASSERT_THAT(lock, IsOk()) << error;
    EXPECT_THAT((*lock)->CheckHeld(), IsOk());
    EXPECT_THAT(lines_.lines(), ElementsAre(AllOf(StartsWith("W "),
                                                  HasSubstr("has no locks"))));
  }
}

TEST_F(TrainDirMarkTest, AnotherErrorOfTheDisk_IsAnError) {
  error_ = EIO;
  EXPECT_FALSE(Acquire(1).ok());
}

TEST_F(TrainDirMarkTest, WhoComesLast_TakesItFromTheFirst) {
  const auto first = Acquire(1);
  ASSERT_THAT(first, IsOk());
  const auto last = Acquire(2);
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT((*last)->CheckHeld(), IsOk());
  EXPECT_THAT((*first)->CheckHeld(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(absl::StrCat("process ", getpid()))));
}

TEST_F(TrainDirMarkTest, AMarkThatIsGone_IsMadeAnew) {
  const auto lock = Acquire(1);
  ASSERT_THAT(lock, IsOk());
  ASSERT_EQ(unlink((dir_ + "/chief").c_str()), 0);
  EXPECT_THAT((*lock)->CheckHeld(), IsOk());
  ASSERT_THAT(Acquire(2), IsOk());
  EXPECT_FALSE((*lock)->CheckHeld().ok());
}

// The kernels of two machines, with mounts that keep locks to themselves.
TEST_F(TrainDirLockTest, WithLocksOfOneMachine_WhoComesLastTakesIt) {
  TrainDirLock::Options options;
  options.flock = [](int, int) { return 0; };
  options.incarnation = 1;
  const auto first = TrainDirLock::Acquire(dir_, options);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT((*first)->CheckHeld(), IsOk());
  options.incarnation = 2;
  const auto last = TrainDirLock::Acquire(dir_, options);
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT((*last)->CheckHeld(), IsOk());
  EXPECT_THAT((*first)->CheckHeld(),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace muster
