#include "worker/input/map/map_chain.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/map/map_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MapChainTest, CopiesWithoutStages) {
  const std::vector<uint8_t> row = {1, 2, 3};
  EXPECT_THAT(MapRow<uint8_t>({}, {3}, row), IsOkAndHolds(row));
}

// More stages than buffers; no two neighbours may share one.
TEST(MapChainTest, PassesRowsFromStageToStage) {
  const std::string flip =
      "type: 'random_flip' attr { name: 'probability' i: 1 }";
  const auto row = MapRow<float>(
      {"type: 'resize' attr { name: 'size' list { v: [1, 4] } }", flip,
       "type: 'cast' attr { name: 'scale' b: false }", flip, flip,
       "type: 'resize' attr { name: 'size' list { v: [1, 2] } }",
       "type: 'normalize' attr { name: 'mean' s: '10' } "
       "attr { name: 'std' s: '2' }"},
      {1, 1, 2}, std::vector<uint8_t>{20, 40}, RowRandom(1, 0, 0));
  // 20, 25, 35, 40, turned round; the means of two each.
  EXPECT_THAT(row, IsOkAndHolds(ElementsAre(13.75, 6.25)));
}

TEST(MapChainTest, SaysWhatComesOut) {
  const auto chain = MapChain::Create(
      MapStages({"type: 'resize' attr { name: 'size' list { v: [2, 3] } }",
                 "type: 'cast'"}),
      {UINT8, {3, 8, 8}});
  ASSERT_THAT(chain, IsOk());
  EXPECT_EQ(chain->input(), (RowSpec{UINT8, {3, 8, 8}}));
  EXPECT_EQ(chain->output(), (RowSpec{FLOAT32, {3, 2, 3}}));
  EXPECT_EQ(chain->output().num_bytes(), 72);
}

// Two equal stages draw apart: the flips of one row agree only by chance.
TEST(MapChainTest, StagesHaveRandomNumbersOfTheirOwn) {
  int equal = 0;
  for (int64_t example = 0; example < 200; ++example) {
    const auto row = MapRow<uint8_t>(
        {"type: 'random_flip'", "type: 'random_flip'"}, {1, 1, 2},
        std::vector<uint8_t>{1, 2}, RowRandom(1, 0, example));
    ASSERT_THAT(row, IsOk());
    if ((*row)[0] == 1) ++equal;
  }
  // Five standard deviations, 7 each.
  EXPECT_NEAR(equal, 100, 35);
}

TEST(MapChainTest, NamesTheStageThatIsWrong) {
  const std::string cast = "type: 'cast'";
  const RowSpec input = {UINT8, {6}};
  EXPECT_THAT(
      MapChain::Create(MapStages({cast, "type: 'normalise'"}), input).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("map stage 2 of 2 ('normalise'): unknown"),
                     HasSubstr("did you mean 'normalize'"))));
  EXPECT_THAT(MapChain::Create(MapStages({cast,
                                          "type: 'one_hot' "
                                          "attr { name: 'classes' i: 0 }"}),
                               input)
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("map stage 2 of 2 ('one_hot'): ")));
  EXPECT_THAT(
      MapChain::Create(
          MapStages({"type: 'cast' attr { name: 'scales' b: true }"}), input)
          .status(),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("map stage 1 of 1 ('cast'): unknown attribute 'scales'")));
}

TEST(MapChainTest, RefusesRowsThatAreNone) {
  for (const RowSpec& input :
       {RowSpec{INT64, {6}}, RowSpec{UINT8, {}}, RowSpec{UINT8, {2, 3}},
        RowSpec{FLOAT32, {3, 0, 5}}}) {
    EXPECT_THAT(MapChain::Create({}, input).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("found " + input.ToString())));
  }
}

}  // namespace
}  // namespace muster
