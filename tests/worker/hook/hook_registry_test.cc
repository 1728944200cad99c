// Linked statically, as the binaries are: a hook whose library lacks alwayslink
// is missing here, too.
#include "worker/hook/hook_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

HookParts Parts() {
  HookParts parts;
  parts.stop_job = [](absl::string_view, const absl::Status&) {};
  return parts;
}

TEST(HookRegistryTest, HasEveryHookOfTheListOnce) {
  EXPECT_THAT(HookRegistry::Validate(), IsOk());
  const std::vector<std::string> listed = absl::StrSplit(HOOK_LIST, ',');
  EXPECT_THAT(HookRegistry::Names(), ElementsAreArray(listed));
}

TEST(HookRegistryTest, MakesThoseThatTheTrainingAsksFor) {
  HookParts parts = Parts();
  parts.training.mutable_replication()->mutable_sync();
  parts.training.mutable_log_tensors()->set_every_steps(10);
  auto hooks = MakeRegisteredHooks(parts);
  ASSERT_THAT(hooks, IsOk());
  EXPECT_THAT(*hooks, SizeIs(1));
  parts.chief = true;
  hooks = MakeRegisteredHooks(parts);
  ASSERT_THAT(hooks, IsOk());
  EXPECT_THAT(*hooks, SizeIs(2));
}

TEST(HookRegistryTest, AHookTakesNoPartUnasked) {
  const auto hooks = MakeRegisteredHooks(Parts());
  ASSERT_THAT(hooks, IsOk());
  EXPECT_THAT(*hooks, IsEmpty());
}

TEST(HookRegistryTest, AHookThatCannotBeMadeIsAnError) {
  HookParts parts = Parts();
  parts.chief = true;
  parts.training.mutable_log_tensors()->set_every_steps(10);
  parts.training.mutable_log_tensors()->set_pattern("conv[");
  EXPECT_THAT(MakeRegisteredHooks(parts),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
