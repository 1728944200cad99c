#include "common/process/exhaustion.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

#include "common/process/exit_code.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

void Limit(int resource, rlim_t most) {
  rlimit limit;
  limit.rlim_cur = limit.rlim_max = most;
  setrlimit(resource, &limit);
}

TEST(ExhaustionTest, SaysThatThereIsNoMemory) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("worker");
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(kExitBadConfig), "worker: no more memory: .*-v");
}

TEST(ExhaustionTest, SaysThatThereAreNoThreads) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("ps_server");
        std::thread([] {
          throw std::system_error(
              std::make_error_code(std::errc::resource_unavailable_try_again));
        }).join();
      },
      testing::ExitedWithCode(kExitBadConfig), "ps_server: no more threads: ");
}

TEST(ExhaustionTest, AnAbortWithoutRoomIsSaidToBeThat) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("ps_server");
        Limit(RLIMIT_AS, 1 << 20);
        std::abort();
      },
      testing::ExitedWithCode(kExitBadConfig),
      "ps_server: no more memory: .*ulimit -v");
}

TEST(ExhaustionTest, AnAbortWithoutDescriptorsIsSaidToBeThat) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("ps_server");
        Limit(RLIMIT_NOFILE, 3);
        std::abort();
      },
      testing::ExitedWithCode(kExitBadConfig),
      "ps_server: no more file descriptors: .*ulimit -Hn");
}

TEST(ExhaustionTest, AnAbortWithRoomStaysOne) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("ps_server");
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}

TEST(ExhaustionTest, AnyOtherExceptionStillAborts) {
  EXPECT_EXIT(
      {
        ExplainExhaustion("worker");
        std::thread([] { throw 1; }).join();
      },
      testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace muster
