#include "worker/training/replica_devices.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The threads of each backend "counting" that was made.
std::vector<int>& Threads() {
  static std::vector<int>& threads = *new std::vector<int>();
  return threads;
}

[[maybe_unused]] const bool kCountingRegistered = BackendRegistry::Register(
    "counting", {[](const BackendOptions& options) {
                   Threads().push_back(options.compute_threads);
                   return CreateBackend("ref", options);
                 },
                 [](const GpuOptions&) {
                   return std::vector<Device>{{"counting:0", "", ""},
                                              {"counting:1", "", ""}};
                 }});

// Has memory of its own.
[[maybe_unused]] const bool kFakeRegistered = BackendRegistry::Register(
    "fake_device",
    {[](const BackendOptions&) -> absl::StatusOr<std::unique_ptr<Backend>> {
       return MakeBackend("device_of_ref");
     },
     [](const GpuOptions&) {
       return std::vector<Device>{{"fake_device:0", "", ""}};
     }});

auto Refused(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

constexpr int kWhole = CompileOptions::kWholeLayer;

class ReplicaDevicesTest : public testing::Test {
 protected:
  static ModelSpec Model(const std::string& more) {
    return ParseModel(
        "input_shape: [5] "
        "layer { name: 'first' type: 'dense' attr { name: 'units' i: 4 } } "
        "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
        "layer { name: 'loss' type: 'softmax_cross_entropy' }" +
        more);
  }
  absl::StatusOr<LayerPlacement> Place(const std::string& device,
                                       bool allow_soft_placement = false) {
    DeviceChoice choice;
    choice.allow_soft_placement = allow_soft_placement;
    return PlaceLayers(
        Model("device_rule { pattern: 'l.*' device: '" + device + "' }"),
        choice, said_.reporter());
  }

  ReportedLines said_;
};

TEST_F(ReplicaDevicesTest, LayersThatNameADeviceHaveIt) {
  EXPECT_THAT(Place("/cpu:1"), IsOkAndHolds(UnorderedElementsAre(
                                   Pair(Pair("logits", kWhole), "cpu:1"),
                                   Pair(Pair("loss", kWhole), "cpu:1"))));
  EXPECT_THAT(PlaceLayers(Model(""), DeviceChoice(), said_.reporter()),
              IsOkAndHolds(IsEmpty()));
}

TEST_F(ReplicaDevicesTest, PartsHaveTheirDevices) {
  ModelSpec model = Model("");
  SplitSpec* const split = model.mutable_layer(0)->mutable_split();
  split->set_parts(2);
  split->add_devices("CPU:2");
  split->add_devices("cpu:3");
  EXPECT_THAT(
      PlaceLayers(model, DeviceChoice(), said_.reporter()),
      IsOkAndHolds(UnorderedElementsAre(Pair(Pair("first", 0), "cpu:2"),
                                        Pair(Pair("first", 1), "cpu:3"))));
  split->set_devices(1, "cpu:4711");
  EXPECT_THAT(PlaceLayers(model, DeviceChoice(), said_.reporter()),
              Refused("layer 'first': device=cpu:4711"));
}

TEST_F(ReplicaDevicesTest, ADeviceThatIsNotThereIsNamedWithItsLayer) {
  EXPECT_THAT(Place("/gpu:0"), Refused("layer 'logits': device=cuda:0: "));
  EXPECT_THAT(Place("cpu:4711"),
              Refused("layer 'logits': device=cpu:4711: there is no device"));
}

TEST_F(ReplicaDevicesTest, SoftPlacementSaysOnceWhatItDoes) {
  EXPECT_THAT(Place("/gpu:0", /*allow_soft_placement=*/true),
              IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(said_.lines(),
              ElementsAre(AllOf(HasSubstr("layer 'logits': device=cuda:0"),
                                HasSubstr("--allow_soft_placement"))));
  EXPECT_THAT(Place("tpu:0", /*allow_soft_placement=*/true),
              Refused("there is no device 'tpu:0'"));
}

TEST_F(ReplicaDevicesTest, OwnDeviceFirstAndTheThreadsDivided) {
  Threads().clear();
  BackendOptions options;
  options.compute_threads = 5;
  const auto devices = OpenReplica(
      "counting:1", {{{"a", kWhole}, "counting:0"}, {{"b", 1}, "counting:1"}},
      options);
  ASSERT_THAT(devices, IsOk());
  EXPECT_THAT(devices->names, ElementsAre("counting:1", "counting:0"));
  EXPECT_EQ(devices->Title(), "counting:1+counting:0");
  EXPECT_THAT(
      devices->of_layer,
      UnorderedElementsAre(Pair(Pair("a", kWhole), 1), Pair(Pair("b", 1), 0)));
  EXPECT_THAT(Threads(), ElementsAre(2, 2));
}

TEST_F(ReplicaDevicesTest, OneWithMemoryOfItsOwnCanBeBesideOthers) {
  const auto devices =
      OpenReplica("fake_device:0", {{{"a", kWhole}, "ref:1"}}, {});
  ASSERT_THAT(devices, IsOk());
  EXPECT_NE(devices->backends[0]->streams(), nullptr);
  EXPECT_EQ(devices->backends[1]->streams(), nullptr);
}

TEST_F(ReplicaDevicesTest, APrecisionThatTheDeviceLacksIsRefused) {
  BackendOptions options;
  options.gpu.bf16 = true;
  EXPECT_THAT(OpenDevice("ref:0", options),
              Refused("compute.bf16: backend 'ref'"));
}

TEST_F(ReplicaDevicesTest, TrainsInFloat32Only) {
  EXPECT_THAT(OpenDevice("ref_float64:0", {}),
              Refused("--device=ref_float64:0: training needs"));
}

}  // namespace
}  // namespace muster
