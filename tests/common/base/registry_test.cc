#include "common/base/registry.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FruitTag {
  static constexpr char kKind[] = "fruit";
};
using FruitRegistry = Registry<FruitTag, int>;

struct TwinTag {
  static constexpr char kKind[] = "twin";
};
using TwinRegistry = Registry<TwinTag, int>;

[[maybe_unused]] const bool kPear = FruitRegistry::Register("pear", 2);
[[maybe_unused]] const bool kApple = FruitRegistry::Register("apple", 1);

TEST(RegistryTest, FindsWhatWasRegisteredBeforeMain) {
  EXPECT_THAT(FruitRegistry::Find("apple"), IsOkAndHolds(1));
  EXPECT_THAT(FruitRegistry::Find("pear"), IsOkAndHolds(2));
  EXPECT_THAT(FruitRegistry::Names(), ElementsAre("apple", "pear"));
  EXPECT_THAT(FruitRegistry::Validate(), IsOk());
}

TEST(RegistryTest, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(
      FruitRegistry::Find("aple"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("unknown fruit 'aple'"),
                     HasSubstr("did you mean 'apple'? known: apple, pear"))));
}

TEST(RegistryTest, ADuplicateIsReportedAndDoesNotReplace) {
  TwinRegistry::Register("a", 1);
  TwinRegistry::Register("a", 2);
  EXPECT_THAT(TwinRegistry::Find("a"), IsOkAndHolds(1));
  EXPECT_THAT(
      TwinRegistry::Validate(),
      StatusIs(absl::StatusCode::kAlreadyExists, "two twins are named 'a'"));
}

TEST(RegistryTest, TagsKeepRegistriesOfOneTypeApart) {
  EXPECT_FALSE(TwinRegistry::Find("apple").ok());
}

}  // namespace
}  // namespace muster
