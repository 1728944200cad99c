#include "worker/input/row_position.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(RowPositionTest, ReadsWhatWasMade) {
  const DataPosition made = MakeDataPosition({3, 640}, 64);
  EXPECT_EQ(made.kind(), "rows");
  EXPECT_EQ(made.step_rows(), 64);
  const auto read = ReadRowPosition(made);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, (RowPosition{3, 640}));
}

TEST(RowPositionTest, NothingIsTheBeginning) {
  const auto read = ReadRowPosition(DataPosition());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, (RowPosition{0, 0}));
}

TEST(RowPositionTest, OrdersByEpochFirst) {
  EXPECT_LT((RowPosition{0, 640}), (RowPosition{1, 0}));
  EXPECT_LT((RowPosition{1, 0}), (RowPosition{1, 1}));
  EXPECT_FALSE((RowPosition{1, 1}) < (RowPosition{1, 1}));
}

TEST(RowPositionTest, NamesAnUnknownKind) {
  DataPosition position = MakeDataPosition({1, 2}, 4);
  position.set_kind("tokens");
  EXPECT_THAT(ReadRowPosition(position),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("its kind is 'tokens'")));
  position.clear_kind();
  EXPECT_THAT(ReadRowPosition(position),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("its kind is ''")));
}

TEST(RowPositionTest, RefusesNumbersOutOfRange) {
  for (const RowPosition position :
       {RowPosition{-1, 0}, RowPosition{0, -1},
        RowPosition{int64_t{1} << 62, 0}, RowPosition{0, int64_t{1} << 62}}) {
    EXPECT_THAT(ReadRowPosition(MakeDataPosition(position, 4)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("wanted counts")));
  }
}

}  // namespace
}  // namespace muster
