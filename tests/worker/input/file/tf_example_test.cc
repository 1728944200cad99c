#include "worker/input/file/tf_example.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TfExampleTest : public testing::Test {
 protected:
  TfExampleTest() {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    for (const float value : {0.5f, -1.0f}) {
      features["floats"].mutable_float_list()->add_value(value);
    }
    features["label"].mutable_int64_list()->add_value(-7);
    features["image"].mutable_bytes_list()->add_value("\xff\x01");
    features["none"];
    record_ = example.SerializeAsString();
  }

  std::string record_;
  TfExample example_;
};

TEST_F(TfExampleTest, ReadsFeaturesByName) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  std::vector<float> floats(2);
  ASSERT_THAT(example_.ReadFloats("floats", absl::MakeSpan(floats)), IsOk());
  EXPECT_THAT(floats, ElementsAre(0.5f, -1.0f));
  floats.resize(1);
  ASSERT_THAT(example_.ReadFloats("label", absl::MakeSpan(floats)), IsOk());
  EXPECT_THAT(floats, ElementsAre(-7.0f));
  EXPECT_THAT(example_.Integer("label"), IsOkAndHolds(-7));
  EXPECT_THAT(example_.Bytes("image"), IsOkAndHolds("\xff\x01"));
  EXPECT_THAT(example_.Kind("image"), IsOkAndHolds(Feature::kBytesList));
}

// As TensorFlow writes it: {"x": int64 [300], "y": float [1.5]}.
TEST_F(TfExampleTest, ReadsTheBytesOfTensorFlow) {
  const std::string bytes(
      "\x0a\x1c"
      "\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\xac\x02"
      "\x0a\x0d\x0a\x01y\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f",
      30);
  ASSERT_THAT(example_.Parse(bytes), IsOk());
  EXPECT_THAT(example_.Integer("x"), IsOkAndHolds(300));
  float y = 0;
  ASSERT_THAT(example_.ReadFloats("y", absl::MakeSpan(&y, 1)), IsOk());
  EXPECT_EQ(y, 1.5f);
}

TEST_F(TfExampleTest, NamesWhatWasWantedAndFound) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  const auto refused = [](const std::string& reason) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason));
  };
  EXPECT_THAT(example_.Integer("labels"),
              refused("unknown feature 'labels'; did you mean 'label'? known: "
                      "floats, image, label, none"));
  EXPECT_THAT(example_.Integer("floats"),
              refused("feature 'floats': wanted 1 integers, found 2 floats"));
  EXPECT_THAT(example_.Bytes("label"),
              refused("wanted 1 string of bytes, found 1 integers"));
  EXPECT_THAT(example_.Bytes("none"), refused("found 0 values"));
  std::vector<float> floats(3);
  EXPECT_THAT(example_.ReadFloats("floats", absl::MakeSpan(floats)),
              refused("wanted 3 floats or integers, found 2 floats"));
}

TEST_F(TfExampleTest, KeepsNothingOfTheRecordBefore) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  ASSERT_THAT(example_.Parse(""), IsOk());
  EXPECT_THAT(example_.Integer("label"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TfExampleTest, RefusesWhatIsNoExample) {
  EXPECT_THAT(example_.Parse("text"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("found 4 bytes that are none")));
  // No way to end but a status, or an example.
  for (size_t size = 0; size < record_.size(); ++size) {
    if (!example_.Parse(record_.substr(0, size)).ok()) continue;
    static_cast<void>(example_.Integer("label"));
  }
}

}  // namespace
}  // namespace muster
