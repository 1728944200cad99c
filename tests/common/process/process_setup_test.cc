#include "common/process/process_setup.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

// The tests set up a process of their own each, which ends with 0 if what was
// expected came.

[[noreturn]] void WriteToAPipeThatNobodyReads() {
  SetUpProcess();
  int ends[2];
  if (pipe(ends) != 0) _exit(1);
  close(ends[0]);
  _exit(write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2);
}

[[noreturn]] void WriteToAFileThatMayNotGrow() {
  SetUpProcess();
  const rlimit nothing = {0, RLIM_INFINITY};
  std::FILE* const file = std::tmpfile();
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &nothing) != 0) _exit(1);
  _exit(write(fileno(file), "x", 1) < 0 && errno == EFBIG ? 0 : 2);
}

[[noreturn]] void RaiseALowLimitOfDescriptors() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &limit);
  SetUpProcess();
  getrlimit(RLIMIT_NOFILE, &limit);
  _exit(limit.rlim_cur == limit.rlim_max && limit.rlim_cur > 64 ? 0 : 2);
}

[[noreturn]] void LockInTwoOrders() {
  SetUpProcess();
  absl::Mutex one;
  absl::Mutex other;
  {
    absl::MutexLock first(&one);
    absl::MutexLock second(&other);
  }
  absl::MutexLock first(&other);
  absl::MutexLock second(&one);
  _exit(0);
}

// The stack that a thread gets by default.
size_t StackBytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) _exit(1);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

[[noreturn]] void SetUpWithin(rlim_t address_space, size_t wanted_stack) {
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = address_space;
  setrlimit(RLIMIT_AS, &limit);
  SetUpProcess();
  _exit(StackBytes() == wanted_stack ? 0 : 2);
}

TEST(ProcessSetupDeathTest, ThreadsReserveLessWhereAddressSpaceIsLimited) {
  EXPECT_EXIT(SetUpWithin(RLIM_INFINITY, StackBytes()),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(SetUpWithin(rlim_t{1} << 46, 2 << 20), testing::ExitedWithCode(0),
              "");
}

TEST(ProcessSetupDeathTest, APipeThatNobodyReadsIsAnError) {
  EXPECT_EXIT(WriteToAPipeThatNobodyReads(), testing::ExitedWithCode(0), "");
}

TEST(ProcessSetupDeathTest, AFileThatMayNotGrowIsAnError) {
  EXPECT_EXIT(WriteToAFileThatMayNotGrow(), testing::ExitedWithCode(0), "");
}

TEST(ProcessSetupDeathTest, DescriptorsAreAsManyAsMayBe) {
  EXPECT_EXIT(RaiseALowLimitOfDescriptors(), testing::ExitedWithCode(0), "");
}

TEST(ProcessSetupDeathTest, LocksInTwoOrdersDoNotAbort) {
  EXPECT_EXIT(LockInTwoOrders(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster
