#include "common/process/exit_code.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ExitCodeTest, OnlyTheNetworkIsAMatterOfSecurity) {
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("refusing to listen")),
            kExitInsecure);
  // Of a file: no right to it is a wrong configuration.
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("open '/root/x'")),
            kExitBadConfig);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("--training")),
            kExitBadConfig);
}

}  // namespace
}  // namespace muster
