#include "worker/input/fill_batch.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"

namespace muster {
namespace {

using testing::ElementsAre;

TEST(FillBatchTest, EachFillingHasAnIdOfItsOwn) {
  const CountingDataSet data_set(5);
  Batch batch = MakeBatch(data_set, 3);
  Batch other = MakeBatch(data_set, 3);
  std::set<int64_t> ids = {batch.id};
  EXPECT_EQ(batch.id, 0);
  for (int i = 0; i < 2; ++i) {
    for (Batch* const filled : {&batch, &other}) {
      ASSERT_THAT(FillBatchInOrder(data_set, 1, *filled), IsOk());
      ids.insert(filled->id);
    }
  }
  EXPECT_EQ(ids.size(), 5);
}

TEST(FillBatchTest, TakesTheRestInOrder) {
  const CountingDataSet data_set(5);
  Batch batch = MakeBatch(data_set, 3);
  EXPECT_EQ(batch.rows, 0);
  ASSERT_THAT(FillBatchInOrder(data_set, 0, batch), IsOk());
  EXPECT_THAT(batch.labels(), ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.input(), ElementsAre(0, 0.5f, 1, 1.5f, 2, 2.5f));
  EXPECT_EQ(batch.rows, 3);
  ASSERT_THAT(FillBatchInOrder(data_set, 3, batch), IsOk());
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.labels()[1], 4);
  ASSERT_THAT(FillBatchInOrder(data_set, 6, batch), IsOk());
  EXPECT_EQ(batch.rows, 0);
}

}  // namespace
}  // namespace muster
