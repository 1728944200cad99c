#include "ps_server/block/parameter_memory.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 100;

TEST(ParameterMemoryTest, IsZeroAndForThisProcessAlone) {
  const auto memory = ParameterMemory::Private(kBytes);
  EXPECT_EQ(memory->size_bytes(), kBytes);
  EXPECT_EQ(memory->data()[kBytes - 1], 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0);
  EXPECT_THAT(memory->segment().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ParameterMemoryTest, IsZeroAndCanBeGivenToOthers) {
  for (const int64_t bytes : {kBytes, int64_t{0}}) {
    const auto memory = ParameterMemory::Shared(bytes);
    EXPECT_EQ(memory->size_bytes(), bytes);
    ASSERT_THAT(memory->segment().status(), IsOk());
    EXPECT_EQ(memory->segment()->data(), memory->data());
  }
}

TEST(ParameterMemoryTest, WithoutDescriptorsItIsThisProcessesAlone) {
  const NoDescriptorsLeft none;
  const auto memory = ParameterMemory::Shared(kBytes);
  memory->data()[kBytes - 1] = 'x';
  EXPECT_THAT(memory->segment().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("memfd_create")));
}

}  // namespace
}  // namespace muster
