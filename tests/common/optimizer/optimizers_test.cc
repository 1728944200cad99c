// Linked statically, as the binaries are: a rule whose library lacks
// alwayslink is missing here, too.
#include <string>

#include "common/optimizer/update_rule.h"
#include "common/optimizer/update_rule_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(OptimizersTest, HasEveryRuleOnce) {
  EXPECT_THAT(UpdateRuleRegistry::Validate(), IsOk());
  EXPECT_THAT(UpdateRuleNames(),
              ElementsAre("adagrad", "adam", "adamw", "ftrl", "momentum",
                          "nesterov", "rmsprop", "sgd"));
}

TEST(OptimizersTest, BuildsEveryRuleFromItsNameAlone) {
  for (const std::string& name : UpdateRuleNames()) {
    OptimizerSpec spec;
    spec.set_name(name);
    EXPECT_THAT(CreateUpdateRule(spec), IsOk()) << name;
    EXPECT_THAT(CreateReferenceRule<float>(spec), IsOk()) << name;
    EXPECT_THAT(CreateReferenceRule<double>(spec), IsOk()) << name;
    const auto attributes = UpdateRuleAttributes(name);
    ASSERT_THAT(attributes, IsOk()) << name;
    EXPECT_THAT(FindAttr(*attributes, "learning_rate"), IsOk()) << name;
  }
}

}  // namespace
}  // namespace muster
