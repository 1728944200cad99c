// What is said before the first call; the verbs' tests make them.
#include "worker/ctl/namespace_calls.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

absl::Status Create(const std::string& flag, const std::string& value) {
  VerbCall call;
  call.flags["ps_hosts"] = {"127.0.0.1:1"};
  call.flags[flag] = {value};
  return NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook).status();
}

// For two threads at most.
void LeaveLittleRoom() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit;
  limit.rlim_cur = limit.rlim_max = pages * getpagesize() + (20 << 20);
  setrlimit(RLIMIT_AS, &limit);
}

// gRPC waits for threads that cannot start.
TEST(NamespaceCallsDeathTest, WithoutRoomForThreads_SaysSo) {
  EXPECT_EXIT(
      {
        LeaveLittleRoom();
        const absl::Status status = Create("cluster", "");
        write(STDERR_FILENO, status.message().data(), status.message().size());
        _exit(absl::IsInvalidArgument(status) ? 2 : 0);
      },
      testing::ExitedWithCode(2), "starting threads: wanted .*ulimit -v");
}

TEST(NamespaceCallsTest, WithoutPsTasks_NamesTheFlagsThatThereAre) {
  EXPECT_THAT(Create("ps_hosts", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give --cluster=FILE or --ps_hosts")));
}

TEST(NamespaceCallsTest, AKeyThatEverybodyMayRead_IsSaid) {
  const auto made = Certificates::Make();
  ASSERT_THAT(made, IsOk());
  const std::string key = absl::StrCat((*made)->folder(), "/viewer.key");
  ASSERT_EQ(chmod(key.c_str(), 0644), 0);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Create("certs_dir", (*made)->folder()), IsOk());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("everybody on this machine may read " + key));
}

}  // namespace
}  // namespace muster
