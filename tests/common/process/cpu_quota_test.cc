#include "common/process/cpu_quota.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// A machine's files, none at first.
class CpuQuotaTest : public testing::Test {
 protected:
  CpuQuotaTest()
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
  double Quota() const { return CpuQuota(root_); }

 private:
  const std::string root_;
};

TEST_F(CpuQuotaTest, IsNoneWithoutGroupsAndForMax) {
  EXPECT_EQ(Quota(), 0);
  Write("proc/self/cgroup", "0::/a\n");
  EXPECT_EQ(Quota(), 0);
  Write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
}

TEST_F(CpuQuotaTest, IsTheLeastOfTheOwnGroupAndThoseAbove) {
  Write("proc/self/cgroup", "0::/pods/one\n");
  Write("sys/fs/cgroup/pods/one/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota(), 4);
  Write("sys/fs/cgroup/pods/cpu.max", "125000 50000\n");
  EXPECT_EQ(Quota(), 2.5);
  Write("sys/fs/cgroup/pods/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(Quota(), 2.5);
}

TEST_F(CpuQuotaTest, IsThatOfAContainerThatSeesItselfAsTheRoot) {
  Write("proc/self/cgroup", "0::/../docker/0123\n");
  Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(CpuQuotaTest, KnowsVersion1ByEitherName) {
  Write("proc/self/cgroup", "5:memory:/b\n4:cpu,cpuacct:/a/b\n0::/\n");
  Write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0);
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3);
  Write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "200000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2);
}

TEST_F(CpuQuotaTest, WhatMakesNoSenseLimitsNothing) {
  Write("proc/self/cgroup", "0::/a\nnonsense\n\n7:cpu\n");
  for (const char* const text :
       {"", "1", "1 2 3", "0 100000", "-4 100000", "4 0", "x 100000"}) {
    Write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(Quota(), 0) << text;
  }
}

}  // namespace
}  // namespace muster
