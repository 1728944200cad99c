#include "common/process/exit_code.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ExitCodeTest, OnlyTheNetworkIsAMatterOfSecurity) {
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("refusing to listen")),
            kExitInsecure);
  // No right to a file is a wrong configuration.
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("open '/root/x'")),
            kExitBadConfig);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("--training")),
            kExitBadConfig);
}

}  // namespace
}  // namespace muster
