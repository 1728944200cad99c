#include "worker/model/layer_devices.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> DevicesOf(const std::string& rules) {
  ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      rules + R"pb(
        layer { name: "conv1" }
        layer { name: "conv2" device: "/cpu:7" }
        layer { name: "dense" }
      )pb",
      &model));
  return LayerDevices(model);
}

TEST(LayerDevicesTest, ALayerWithoutOneHasNone) {
  EXPECT_THAT(DevicesOf(""), IsOkAndHolds(ElementsAre("", "cpu:7", "")));
}

TEST(LayerDevicesTest, TheFirstRuleThatMatchesCounts) {
  EXPECT_THAT(DevicesOf("device_rule { pattern: 'conv.*' device: '/gpu:0' }"
                        "device_rule { pattern: '.*' device: 'cpu:1' }"),
              IsOkAndHolds(ElementsAre("cuda:0", "cpu:7", "cpu:1")));
}

TEST(LayerDevicesTest, ARuleThatSaysNothingIsRefused) {
  EXPECT_THAT(DevicesOf("device_rule { pattern: 'conv' device: 'cpu:1' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model.device_rule"),
                             HasSubstr("'conv'"), HasSubstr("conv1"))));
  EXPECT_THAT(
      DevicesOf("device_rule { pattern: 'conv.*' }"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no device")));
  EXPECT_THAT(DevicesOf("device_rule { pattern: '(' device: 'cpu:1' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.device_rule")));
}

}  // namespace
}  // namespace muster
