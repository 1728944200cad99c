#include "common/process/thread_supply.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// That too many are refused: tests/integration/worker_flags_test.py.
TEST(ThreadSupplyTest, AFewThreadsCanBeHad) {
  EXPECT_THAT(CheckThreads(0), IsOk());
  EXPECT_THAT(CheckThreads(3), IsOk());
}

}  // namespace
}  // namespace muster
