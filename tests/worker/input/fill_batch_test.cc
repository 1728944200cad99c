#include "worker/input/fill_batch.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "worker/input/bad_records.h"

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

// Whose second row is bad.
class TornDataSet : public CountingDataSet {
 public:
  TornDataSet() : CountingDataSet(5) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    if (index == 1) return absl::DataLossError("torn");
    return CountingDataSet::Read(index, into);
  }
};

TEST(FillBatchTest, SaysWhichRowsAreThereWhenBadOnesAreNot) {
  const TornDataSet data_set;
  Batch batch = MakeBatch(data_set, 3);
  BadRecords bad_records{Reporter()};
  std::vector<int64_t> indices = {9};
  EXPECT_THAT(FillBatchInOrder(data_set, 0, &bad_records, batch, &indices),
              IsOkAndHolds(4));
  EXPECT_THAT(indices, ElementsAre(0, 2, 3));
  EXPECT_THAT(batch.labels(), ElementsAre(0, 2, 3));
  EXPECT_EQ(bad_records.count(), 1);
  EXPECT_THAT(FillBatchInOrder(data_set, 0, nullptr, batch, &indices),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace muster
