// Every stage in map_stages.bzl is registered and described, maps what it
// should and refuses the rest. Those that draw: random_stages_test.cc.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/map/map_fixture.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

TEST(MapStagesTest, EveryListedStageIsRegistered) {
  ASSERT_THAT(MapStageRegistry::Validate(), IsOk());
  const std::vector<std::string> listed = absl::StrSplit(MAP_STAGE_LIST, ',');
  EXPECT_THAT(MapStageRegistry::Names(), testing::ElementsAreArray(listed));
}

TEST(MapStagesTest, DescriptionHasEveryStageAndAttribute) {
  const std::string text = DescribeMapStages();
  for (const std::string& name : MapStageRegistry::Names()) {
    EXPECT_THAT(text, HasSubstr(name + ": "));
    const absl::StatusOr<MapStageType> type = MapStageRegistry::Find(name);
    ASSERT_THAT(type, IsOk());
    for (const AttrDef& attr : type->attributes) {
      EXPECT_THAT(text, HasSubstr("    " + attr.name + ": "));
    }
  }
}

TEST(CastTest, ScalesUnlessToldNotTo) {
  EXPECT_THAT(MapRow<float>({"type: 'cast'"}, {4}, Bytes{0, 51, 254, 255}),
              IsOkAndHolds(ElementsAre(0, 51 / 255.0f, 254 / 255.0f, 1)));
  EXPECT_THAT(MapRow<float>({"type: 'cast' attr { name: 'scale' b: false }"},
                            {3}, Bytes{0, 128, 255}),
              IsOkAndHolds(ElementsAre(0, 128, 255)));
}

TEST(CastTest, LeavesFloatsAsTheyAre) {
  EXPECT_THAT(
      MapRow<float>({"type: 'cast'"}, {2}, std::vector<float>{0.5f, -300}),
      IsOkAndHolds(ElementsAre(0.5f, -300)));
}

TEST(NormalizeTest, TakesOneNumberOrOneAChannel) {
  const Floats image = {1, 2, 3, 4};
  EXPECT_THAT(MapRow<float>({"type: 'normalize' attr { name: 'mean' s: '1' } "
                             "attr { name: 'std' s: '2, 0.5' }"},
                            {2, 1, 2}, image),
              IsOkAndHolds(ElementsAre(0, 0.5, 4, 6)));
  // Features are channels of one value.
  EXPECT_THAT(
      MapRow<float>({"type: 'normalize' attr { name: 'mean' s: '1,2,3,5' } "
                     "attr { name: 'std' s: '2' }"},
                    {4}, image),
      IsOkAndHolds(ElementsAre(0, 0, 0, -0.5)));
}

TEST(OneHotTest, PutsAOneAtThePlaceOfEachValue) {
  const std::string stage = "type: 'one_hot' attr { name: 'classes' i: 3 }";
  EXPECT_THAT(MapRow<float>({stage}, {2}, Bytes{2, 0}),
              IsOkAndHolds(ElementsAre(0, 0, 1, 1, 0, 0)));
  EXPECT_THAT(MapRow<float>({stage}, {1}, Floats{1}),
              IsOkAndHolds(ElementsAre(0, 1, 0)));
}

TEST(OneHotTest, RefusesValuesThatAreNoClasses) {
  for (const float value :
       {3.0f, -1.0f, 0.5f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(MapRow<float>({"type: 'one_hot' attr { name: 'classes' i: 3 }"},
                              {2}, Floats{0, value}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("map stage 1 of 1 ('one_hot'): value 1 of "
                                   "the row must be a whole number in [0, 3)")))
        << value;
  }
}

struct Refusal {
  std::string stage;
  RowSpec input;
  std::string message;
};

void ExpectRefused(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    const auto chain =
        MapChain::Create(MapStages({refusal.stage}), refusal.input);
    EXPECT_THAT(chain.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(refusal.message)))
        << refusal.stage;
  }
}

TEST(MapStagesTest, RefuseRowsThatTheyCannotTake) {
  const RowSpec features = {FLOAT32, {6}};
  const RowSpec image = {UINT8, {3, 4, 5}};
  const std::string size = " attr { name: 'size' i: 9 }";
  const std::string not_image =
      "needs rows [channels, height, width], found float32 [6]";
  ExpectRefused({
      {"type: 'normalize' attr { name: 'mean' s: '0' } "
       "attr { name: 'std' s: '1' }",
       image, "found uint8 [3, 4, 5]; put a cast before it"},
      {"type: 'random_crop'", features, not_image},
      {"type: 'random_flip'", features, not_image},
      {"type: 'cutout'" + size, features, not_image},
      {"type: 'resize'" + size, features, not_image},
      {"type: 'one_hot' attr { name: 'classes' i: 2 }", image,
       "needs rows [n], found uint8 [3, 4, 5]"},
      {"type: 'one_hot' attr { name: 'classes' i: 1048576 }",
       {UINT8, {int64_t{1} << 50}},
       "one_hot"},
      {"type: 'random_crop' attr { name: 'size' list { v: [4, 8] } } "
       "attr { name: 'padding' i: 1 }",
       image, "a crop of [4, 8] must fit into the padded image"},
  });
}

TEST(MapStagesTest, RefuseAttributesThatMakeNoSense) {
  const RowSpec image = {FLOAT32, {3, 4, 5}};
  const std::string mean = "type: 'normalize' attr { name: 'mean' s: '0' } ";
  ExpectRefused({
      {mean + "attr { name: 'std' s: '1, 2' }", image,
       "one for each of 3 channels; found 2"},
      {mean + "attr { name: 'std' s: '1,,2' }", image, "found '1,,2'"},
      {mean + "attr { name: 'std' s: 'inf' }", image, "found 'inf'"},
      {mean + "attr { name: 'std' s: '1, 0, 1' }", image, "numbers > 0"},
      // Not zero, but zero as a float32.
      {mean + "attr { name: 'std' s: '1e-60' }", image, "numbers > 0"},
      {mean + "attr { name: 'std' f: 1 }", image, "must be of type string"},
      {"type: 'resize'", image, "'size'"},
      {"type: 'resize' attr { name: 'size' list { v: [1, 2, 3] } }", image,
       "needs one integer or [rows, columns], found 3"},
      {"type: 'resize' attr { name: 'size' i: 0 }", image, "'size'"},
      {"type: 'cutout' attr { name: 'size' i: 0 }", image, "'size'"},
      {"type: 'random_flip' attr { name: 'probability' f: 1.5 }", image,
       "'probability'"},
      {"type: 'random_crop' attr { name: 'padding' i: -1 }", image,
       "'padding'"},
      {"type: 'resize' attr { name: 'size' i: 1048576 }", image,
       "bytes of memory"},
  });
}

}  // namespace
}  // namespace muster
