#include "common/process/memory_limit.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr int64_t kMachine = int64_t{64} << 30;

// A machine's files, none at first.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name(),
            "/")) {
    std::filesystem::remove_all(root_);
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t Limit() const { return MemoryLimit(root_, kMachine); }

 private:
  const std::string root_;
};

TEST_F(MemoryLimitTest, IsTheMachinesWithoutGroups) {
  EXPECT_EQ(Limit(), kMachine);
  Write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(Limit(), kMachine);
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Limit(), kMachine);
}

TEST_F(MemoryLimitTest, IsThatOfTheOwnGroup) {
  Write("proc/self/cgroup", "0::/pods/one\n");
  Write("sys/fs/cgroup/pods/memory.max", "max\n");
  Write("sys/fs/cgroup/pods/one/memory.max", "1073741824\n");
  Write("sys/fs/cgroup/pods/other/memory.max", "4096\n");
  EXPECT_EQ(Limit(), int64_t{1} << 30);
}

TEST_F(MemoryLimitTest, IsTheLeastOfTheGroupsAbove) {
  Write("proc/self/cgroup", "0::/pods/one\n");
  Write("sys/fs/cgroup/pods/memory.max", "4096\n");
  Write("sys/fs/cgroup/pods/one/memory.max", "8192\n");
  EXPECT_EQ(Limit(), 4096);
}

TEST_F(MemoryLimitTest, IsThatOfAContainerThatSeesItselfAsTheRoot) {
  Write("proc/self/cgroup", "0::/../docker/0123\n");
  Write("sys/fs/cgroup/memory.max", "8192\n");
  EXPECT_EQ(Limit(), 8192);
}

TEST_F(MemoryLimitTest, KnowsVersion1) {
  Write("proc/self/cgroup", "5:cpu:/b\n4:hugetlb,memory:/a/b\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Limit(), kMachine);
  Write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(Limit(), kMachine) << "the path of another controller";
  Write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "12288\n");
  EXPECT_EQ(Limit(), 12288);
}

TEST_F(MemoryLimitTest, IsNeverAboveTheMachines) {
  Write("proc/self/cgroup", "0::/a\n");
  Write("sys/fs/cgroup/a/memory.max", absl::StrCat(kMachine + 1, "\n"));
  EXPECT_EQ(Limit(), kMachine);
}

TEST_F(MemoryLimitTest, WhatMakesNoSenseLimitsNothing) {
  Write("proc/self/cgroup", "0::/a\nnonsense\n\n7:memory\n");
  for (const char* const text : {"", "-1\n", "much\n", "1e9\n"}) {
    Write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(Limit(), kMachine) << text;
  }
}

TEST(OwnMemoryLimitTest, IsSomeMemory) {
  EXPECT_GT(OwnMemoryLimit(), int64_t{1} << 20);
}

TEST(CheckMemoryTest, SaysWhatIsWantedAndWhatIsThere) {
  EXPECT_THAT(CheckMemory("a model", 100, 100), IsOk());
  EXPECT_THAT(CheckMemory("a model", 101, 100),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a model wants 101 bytes of memory, this process can "
                       "have 100"));
}

TEST(SaturatingProductTest, StopsAtTheLargestNumber) {
  EXPECT_EQ(SaturatingProduct(6, 7), 42);
  EXPECT_EQ(SaturatingProduct(int64_t{1} << 62, 2), INT64_MAX);
}

}  // namespace
}  // namespace muster
