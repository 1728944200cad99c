#include "worker/input/batch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

TEST(BatchTest, HoldsTensorsOfEachTypeByName) {
  Batch batch = MakeLabelledBatch(/*room=*/4, Shape({2, 3}));
  batch.Add("ids", INT64, Shape({5}), 4);
  batch.Add("pixels", UINT8, Shape({7}), 4);
  EXPECT_EQ(batch.rows, 0);
  EXPECT_EQ(batch.id, 0);
  EXPECT_THAT(batch.input(), SizeIs(24));
  EXPECT_THAT(batch.labels(), SizeIs(4));
  batch.labels()[3] = 8;
  const auto ids = batch.Get<int64_t>("ids");
  ASSERT_THAT(ids, IsOk());
  EXPECT_THAT(*ids, SizeIs(20));
  ids->back() = int64_t{1} << 40;
  const auto pixels = batch.Get<uint8_t>("pixels");
  ASSERT_THAT(pixels, IsOk());
  EXPECT_THAT(*pixels, SizeIs(28));
  pixels->front() = 255;
  // Each has memory of its own.
  EXPECT_THAT(batch.input(), Each(0));
  const Batch& same = batch;
  EXPECT_EQ(same.labels().back(), 8);
  EXPECT_EQ(same.Get<int64_t>("ids")->back(), int64_t{1} << 40);
  EXPECT_EQ(same.Get<uint8_t>("pixels")->front(), 255);
  EXPECT_EQ(same.tensors[2].row_shape, Shape({5}));
}

TEST(BatchTest, SaysWhatItHasInsteadOfWhatWasWanted) {
  const Batch batch = MakeLabelledBatch(/*room=*/1, Shape({2}));
  EXPECT_THAT(batch.Get<uint8_t>("mask"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("wanted uint8 'mask', it has "
                                 "[float32 'input', int32 'labels']")));
  EXPECT_THAT(
      batch.Get<int64_t>("labels"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("wanted int64 'labels', it has int32 'labels'")));
}

}  // namespace
}  // namespace muster
