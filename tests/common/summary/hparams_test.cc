#include "common/summary/hparams.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// TensorBoard 2.21: hparams_pb({"seed": 2.0}, start_time_secs=7), without a
// group.
TEST(HparamsTest, TheStartHasTheBytesOfTensorBoardsOwn) {
  HparamsSessionStart start;
  (*start.mutable_hparams())["seed"] = HparamOf(2);
  start.set_start_time_secs(7);
  Summary summary;
  AddHparamsStart(start, &summary);
  ASSERT_EQ(summary.value_size(), 1);
  EXPECT_EQ(summary.value(0).tag(), "_hparams_/session_start_info");
  const SummaryMetadata& metadata = summary.value(0).metadata();
  EXPECT_EQ(metadata.plugin_data().plugin_name(), "hparams");
  EXPECT_EQ(absl::BytesToHexString(metadata.plugin_data().content()),
            "1a1c0a110a04736565641209110000000000000040290000000000001c40");
  EXPECT_EQ(
      absl::BytesToHexString(summary.value(0).tensor().SerializeAsString()),
      "080112021200");
}

// TensorBoard 2.21: SessionEndInfo(STATUS_SUCCESS, 9).
TEST(HparamsTest, TheEndHasTheBytesOfTensorBoardsOwn) {
  HparamsSessionEnd end;
  end.set_status(HparamsSessionEnd::SUCCESS);
  end.set_end_time_secs(9);
  Summary summary;
  AddHparamsEnd(end, &summary);
  EXPECT_EQ(summary.value(0).tag(), "_hparams_/session_end_info");
  EXPECT_EQ(absl::BytesToHexString(
                summary.value(0).metadata().plugin_data().content()),
            "220b0801110000000000002240");
}

TEST(HparamsTest, TextsThatAreNumbersOrBoolsAreSuch) {
  EXPECT_EQ(HparamOf("1e-3").number_value(), 1e-3);
  EXPECT_TRUE(HparamOf("true").bool_value());
  EXPECT_EQ(HparamOf("cosine").string_value(), "cosine");
  // As "nan" and "inf", which a column of numbers could not show.
  EXPECT_EQ(HparamOf("inf").string_value(), "inf");
}

}  // namespace
}  // namespace muster
