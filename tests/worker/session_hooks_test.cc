#include "worker/session_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::SizeIs;

class SessionHooksTest : public ::testing::Test {
 protected:
  std::unique_ptr<SessionHooks> Make() {
    SessionHooks::Parts parts;
    parts.write_progress = [](absl::string_view) {};
    parts.say = [](bool, absl::string_view) {};
    parts.begin_save = [this]() -> absl::StatusOr<PendingSave> {
      calls_.push_back("save");
      return PendingSave{1, [] { return std::string("ckpt-1"); }};
    };
    parts.evaluate = [this]() -> absl::StatusOr<EvaluationResult> {
      calls_.push_back("evaluate");
      return EvaluationResult{10, 0.5, 1};
    };
    auto hooks = SessionHooks::Create(options_, parts);
    EXPECT_THAT(hooks, IsOk());
    return *std::move(hooks);
  }
  void End(const SessionHooks& hooks) {
    EndRecord end;
    end.global_step = 1;
    end.completed = true;
    for (Hook* hook : hooks.in_order()) EXPECT_THAT(hook->AtEnd(end), IsOk());
  }

  SessionHooks::Options options_;
  std::vector<std::string> calls_;
};

TEST_F(SessionHooksTest, ChiefSavesBeforeItEvaluates) {
  options_.chief = options_.saves = true;
  const auto hooks = Make();
  EXPECT_EQ(hooks->newest_checkpoint(), "");
  EXPECT_FALSE(hooks->evaluated().has_value());
  End(*hooks);
  EXPECT_EQ(calls_, (std::vector<std::string>{"save", "evaluate"}));
  EXPECT_EQ(hooks->newest_checkpoint(), "ckpt-1");
  ASSERT_TRUE(hooks->evaluated().has_value());
  EXPECT_EQ(hooks->evaluated()->accuracy, 0.5);
}

TEST_F(SessionHooksTest, ChiefWithoutAFolderSavesNothing) {
  options_.chief = true;
  const auto hooks = Make();
  absl::Status saved;
  hooks->SaveNow([&saved](const absl::Status& status) { saved = status; });
  EXPECT_THAT(saved, StatusIs(absl::StatusCode::kFailedPrecondition));
  End(*hooks);
  EXPECT_EQ(calls_, std::vector<std::string>{"evaluate"});
  EXPECT_EQ(hooks->newest_checkpoint(), "");
}

TEST_F(SessionHooksTest, OtherWorkersNeitherSaveNorEvaluate) {
  const auto hooks = Make();
  End(*hooks);
  EXPECT_THAT(calls_, SizeIs(0));
  EXPECT_FALSE(hooks->evaluated().has_value());
}

}  // namespace
}  // namespace muster
