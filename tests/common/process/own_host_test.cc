#include "common/process/own_host.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(OwnHostTest, LoopbackIsThisMachineByAnyOfItsAddresses) {
  for (const char* const host : {"127.0.0.1", "127.0.1.1", "localhost"}) {
    EXPECT_THAT(IsOwnHost(host), IsOkAndHolds(true)) << host;
  }
}

// RFC 1112 keeps 240/4 for nobody, and RFC 6761's name stands for nothing;
// where no one can be asked, that is said.
TEST(OwnHostTest, WhatNoInterfaceHasIsAnother) {
  EXPECT_THAT(IsOwnHost("240.0.0.1"), IsOkAndHolds(false));
  EXPECT_FALSE(IsOwnHost("host.invalid").value_or(false));
}

}  // namespace
}  // namespace muster
