#include "common/summary/summary_value.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// The event of TensorBoard 2.21's scalar_pb("loss", 0.25), with wall time 1.5
// and step 7, without the data class (which it adds when it reads).
constexpr char kScalarEvent[] =
    "09000000000000f83f10072a210a1f0a046c6f7373420a080112002a040000803e4a0b0a09"
    "0a077363616c617273";
// The same of text_pb("t", "hi").
constexpr char kTextEvent[] =
    "09000000000000f83f10072a190a170a0174420808071200420268694a080a060a04746578"
    "74";

std::string HexWithoutDataClass(const Summary& summary) {
  Event event;
  event.set_wall_time(1.5);
  event.set_step(7);
  *event.mutable_summary() = summary;
  event.mutable_summary()
      ->mutable_value(0)
      ->mutable_metadata()
      ->clear_data_class();
  return absl::BytesToHexString(event.SerializeAsString());
}

TEST(SummaryValueTest, ScalarHasTensorBoardsBytes) {
  Summary summary;
  AddScalar("loss", 0.25, &summary);
  EXPECT_EQ(HexWithoutDataClass(summary), kScalarEvent);
  EXPECT_EQ(summary.value(0).metadata().data_class(), DATA_CLASS_SCALAR);
}

TEST(SummaryValueTest, TextHasTensorBoardsBytes) {
  Summary summary;
  AddText("t", "hi", &summary);
  EXPECT_EQ(HexWithoutDataClass(summary), kTextEvent);
  EXPECT_EQ(summary.value(0).metadata().data_class(), DATA_CLASS_TENSOR);
}

TEST(SummaryValueTest, HistogramIsAMatrixOfBuckets) {
  Summary summary;
  AddHistogram("w", MakeHistogram({0.f, 30.f}), &summary);
  const SummaryTensor& tensor = summary.value(0).tensor();
  EXPECT_EQ(tensor.dtype(), DT_DOUBLE);
  ASSERT_EQ(tensor.tensor_shape().dim_size(), 2);
  EXPECT_EQ(tensor.tensor_shape().dim(0).size(), 30);
  EXPECT_EQ(tensor.tensor_shape().dim(1).size(), 3);
  ASSERT_EQ(tensor.double_val_size(), 90);
  // left, right, count of the first and of the last bucket.
  EXPECT_EQ(tensor.double_val(0), 0);
  EXPECT_EQ(tensor.double_val(1), 1);
  EXPECT_EQ(tensor.double_val(2), 1);
  EXPECT_EQ(tensor.double_val(87), 29);
  EXPECT_EQ(tensor.double_val(88), 30);
  EXPECT_EQ(tensor.double_val(89), 1);
  EXPECT_EQ(summary.value(0).metadata().plugin_data().plugin_name(),
            "histograms");
}

TEST(SummaryValueTest, ImagesStandBehindTheirSize) {
  Summary summary;
  AddImages("input", /*width=*/3, /*height=*/2, {"first", "second"}, &summary);
  const Summary::Value& value = summary.value(0);
  EXPECT_EQ(value.tensor().dtype(), DT_STRING);
  EXPECT_EQ(value.tensor().tensor_shape().dim(0).size(), 4);
  EXPECT_THAT(value.tensor().string_val(),
              testing::ElementsAre("3", "2", "first", "second"));
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "images");
  EXPECT_EQ(value.metadata().data_class(), DATA_CLASS_BLOB_SEQUENCE);
}

TEST(SummaryValueTest, OneSummaryHoldsSeveralTags) {
  Summary summary;
  AddScalar("loss", 1, &summary);
  AddScalar("accuracy", 0, &summary);
  ASSERT_EQ(summary.value_size(), 2);
  EXPECT_EQ(summary.value(1).tag(), "accuracy");
}

TEST(SummaryValueTest, TextIsShownAsItIs) {
  EXPECT_EQ(MarkdownBlock("seed: 1\n# not a title"),
            "    seed: 1\n    # not a title\n");
}

}  // namespace
}  // namespace muster
