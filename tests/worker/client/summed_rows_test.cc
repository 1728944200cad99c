#include "worker/client/summed_rows.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SummedRowsTest, EqualIds_AreAddedInTheOrderGiven) {
  // In another order the large ones would leave 2.
  const std::vector<int64_t> ids = {5, -2, 5, 5, 5};
  const std::vector<float> gradients = {1, 10, 1e8f, -1e8f, 1};
  const SummedRows summed = SumEqualIds(ids, gradients, 1);
  EXPECT_THAT(summed.ids, ElementsAre(-2, 5));
  EXPECT_THAT(summed.gradients, ElementsAre(10, 1));
}

TEST(SummedRowsTest, EachElementOfARow_IsAddedToItsOwn) {
  const SummedRows summed = SumEqualIds({3, 3}, {1, 2, 10, 20}, /*dim=*/2);
  EXPECT_THAT(summed.ids, ElementsAre(3));
  EXPECT_THAT(summed.gradients, ElementsAre(11, 22));
}

TEST(SummedRowsTest, NoRows_AreNone) {
  EXPECT_THAT(SumEqualIds({}, {}, 4).ids, IsEmpty());
}

}  // namespace
}  // namespace muster
