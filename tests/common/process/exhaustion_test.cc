#include "common/process/exhaustion.h"

#include <csignal>
#include <new>
#include <system_error>
#include <thread>

#include "common/process/exit_code.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

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
