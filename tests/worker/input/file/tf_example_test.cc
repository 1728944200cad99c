#include "worker/input/file/tf_example.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
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
    for (const char* const text : {"a", "b"}) {
      features["two"].mutable_bytes_list()->add_value(text);
    }
    record_ = example.SerializeAsString();
  }

  // A feature's numbers.
  template <typename T>
  std::vector<T> Numbers(const std::string& name) {
    const auto values = example_.Get(name);
    EXPECT_THAT(values, IsOk());
    const auto span = std::get<absl::Span<const T>>(*values);
    return {span.begin(), span.end()};
  }

  std::string record_;
  TfExample example_;
};

TEST_F(TfExampleTest, ReadsFeaturesByName) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  EXPECT_THAT(Numbers<float>("floats"), ElementsAre(0.5f, -1.0f));
  EXPECT_THAT(Numbers<int64_t>("label"), ElementsAre(-7));
  EXPECT_EQ(std::get<absl::string_view>(*example_.Get("image")), "\xff\x01");
  EXPECT_TRUE(example_.Has("none"));
  EXPECT_FALSE(example_.Has("other"));
}

// As TensorFlow writes it: {"x": int64 [300], "y": float [1.5]}.
TEST_F(TfExampleTest, ReadsTheBytesOfTensorFlow) {
  const std::string bytes(
      "\x0a\x1c"
      "\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\xac\x02"
      "\x0a\x0d\x0a\x01y\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f",
      30);
  ASSERT_THAT(example_.Parse(bytes), IsOk());
  EXPECT_THAT(Numbers<int64_t>("x"), ElementsAre(300));
  EXPECT_THAT(Numbers<float>("y"), ElementsAre(1.5f));
}

TEST_F(TfExampleTest, NamesWhatWasWantedAndFound) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  const auto refused = [](const std::string& reason) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason));
  };
  EXPECT_THAT(example_.Get("labels"),
              refused("unknown feature 'labels'; did you mean 'label'? known: "
                      "floats, image, label, none, two"));
  EXPECT_THAT(example_.Get("none"), refused("'none': found 0 values"));
  EXPECT_THAT(example_.Get("two"),
              refused("wanted 1 string of bytes, found 2"));
}

TEST_F(TfExampleTest, KeepsNothingOfTheRecordBefore) {
  ASSERT_THAT(example_.Parse(record_), IsOk());
  ASSERT_THAT(example_.Parse(""), IsOk());
  EXPECT_THAT(example_.Get("label"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TfExampleTest, RefusesWhatIsNoExample) {
  EXPECT_THAT(example_.Parse("text"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("found 4 bytes that are none")));
  // No way to end but a status, or an example.
  for (size_t size = 0; size < record_.size(); ++size) {
    if (!example_.Parse(record_.substr(0, size)).ok()) continue;
    static_cast<void>(example_.Get("label"));
  }
}

}  // namespace
}  // namespace muster
