#include "worker/tower/device_names.h"

#include <gtest/gtest.h>

#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Names = std::vector<std::string>;

auto Refused(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

// The devices of the backend "cuda" of this program.
std::vector<Device>& Cards() {
  static std::vector<Device>& cards = *new std::vector<Device>();
  return cards;
}

[[maybe_unused]] const bool kRegistered = BackendRegistry::Register(
    "cuda",
    {[](const BackendOptions&) -> absl::StatusOr<std::unique_ptr<Backend>> {
       return absl::UnimplementedError("devices are chosen, not opened");
     },
     [](const GpuOptions& gpu) {
       std::vector<Device> devices;
       for (const Device& card : Cards()) {
         devices.insert(devices.end(), gpu.virtual_devices, card);
       }
       return devices;
     }});

DeviceChoice Wanted(const std::string& device, const Names& devices = {},
                    int num_devices = 0) {
  DeviceChoice choice;
  choice.device = device;
  choice.devices = devices;
  choice.num_devices = num_devices;
  return choice;
}

absl::StatusOr<Names> Choose(const std::string& device, const Names& devices,
                             int num_devices) {
  const auto chosen = ChooseDevices(Wanted(device, devices, num_devices));
  if (!chosen.ok()) return chosen.status();
  return chosen->names;
}

// Without a card, as on most machines.
class DeviceNamesTest : public testing::Test {
 protected:
  void SetUp() override { Cards() = {{"cuda:0", "", "no driver"}}; }
};

TEST_F(DeviceNamesTest, ABackendIsItsFirstDevice) {
  EXPECT_THAT(ResolveDevice("--device", "ref", {}), IsOkAndHolds("ref:0"));
  EXPECT_THAT(ResolveDevice("--device", "cpu:1", {}), IsOkAndHolds("cpu:1"));
}

TEST_F(DeviceNamesTest, NamesOfTensorFlowAreUnderstood) {
  EXPECT_THAT(ResolveDevice("--device", "/cpu:1", {}), IsOkAndHolds("cpu:1"));
  EXPECT_THAT(Choose("/device:CPU:3", {}, 0),
              IsOkAndHolds(ElementsAre("cpu:3")));
  EXPECT_THAT(Choose("auto", {"/cpu:0", "CPU:1"}, 0),
              IsOkAndHolds(ElementsAre("cpu:0", "cpu:1")));
  EXPECT_THAT(Choose("/cpu:1", {}, 2), Refused("give --device=cpu"));
  EXPECT_THAT(Choose("/gpu:0", {}, 0),
              Refused("--device=/gpu:0: it cannot be used: no driver"));
}

TEST_F(DeviceNamesTest, WhatDoesNotExistIsRefusedWithAListOfWhatDoes) {
  for (const std::string name :
       {"tpu", "cpu:1000", "cpu:", "cpu:01", "cpu:-1", "", ":0"}) {
    EXPECT_THAT(ResolveDevice("--devices", name, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--devices=" + name),
                               HasSubstr("cpu:0 to cpu:"),
                               HasSubstr("ref:0 to ref:"))));
  }
}

TEST_F(DeviceNamesTest, OneTowerByDefault) {
  EXPECT_THAT(Choose("auto", {}, 0), IsOkAndHolds(ElementsAre("cpu:0")));
  EXPECT_THAT(Choose("ref", {}, 1), IsOkAndHolds(ElementsAre("ref:0")));
  EXPECT_THAT(Choose("cpu:3", {}, 1), IsOkAndHolds(ElementsAre("cpu:3")));
}

TEST_F(DeviceNamesTest, ChoosesByNumberOrByName) {
  EXPECT_THAT(Choose("auto", {}, 2),
              IsOkAndHolds(ElementsAre("cpu:0", "cpu:1")));
  EXPECT_THAT(Choose("ref", {}, 2),
              IsOkAndHolds(ElementsAre("ref:0", "ref:1")));
  EXPECT_THAT(Choose("auto", {"cpu:2", "cpu:0"}, 0),
              IsOkAndHolds(ElementsAre("cpu:2", "cpu:0")));
  EXPECT_THAT(Choose("auto", {"cpu:2", "cpu:0"}, 2),
              IsOkAndHolds(ElementsAre("cpu:2", "cpu:0")));
}

TEST_F(DeviceNamesTest, RefusesChoicesThatContradictEachOther) {
  EXPECT_THAT(Choose("auto", {}, -1), Refused("--devices=-1"));
  EXPECT_THAT(Choose("auto", {}, 100000), Refused("--devices=100000"));
  EXPECT_THAT(Choose("cpu:1", {}, 2), Refused("it is one device"));
  EXPECT_THAT(Choose("cpu", {"cpu:0"}, 0), Refused("--device=cpu and"));
  EXPECT_THAT(Choose("auto", {"cpu:0"}, 2), Refused("--devices names 1"));
  EXPECT_THAT(Choose("auto", {"cpu", "cpu:0"}, 0), Refused("cpu:0 twice"));
  EXPECT_THAT(Choose("auto", {"cpu:0", "cpu:99999"}, 0),
              Refused("there is no device 'cpu:99999'"));
}

TEST_F(DeviceNamesTest, DescribesDevicesThatAreAlikeInOneLine) {
  const std::string text = DescribeDevices({});
  EXPECT_THAT(text,
              AllOf(HasSubstr("cpu\n  cpu:0 to cpu:"),
                    HasSubstr("ref\n  ref:0 to ref:"), HasSubstr("oneDNN")));
}

TEST_F(DeviceNamesTest, SaysWhyADeviceCannotBeUsed) {
  EXPECT_THAT(DescribeDevices({}),
              HasSubstr("cuda\n  cuda:0: unusable: no driver\n"));
  Cards() = {{"cuda:0", "big card", ""}, {"cuda:1", "old card", "wanted more"}};
  EXPECT_THAT(DescribeDevices({}),
              HasSubstr("cuda\n  cuda:0: big card\n"
                        "  cuda:1: old card; unusable: wanted more\n"));
}

TEST_F(DeviceNamesTest, TheOptionsReachTheBackend) {
  Cards() = {{"cuda:0", "big card", ""}};
  GpuOptions gpu;
  gpu.virtual_devices = 2;
  EXPECT_THAT(DescribeDevices(gpu), HasSubstr("cuda:0 to cuda:0: big card"));
}

TEST_F(DeviceNamesTest, AutoPassesOverWhatCannotBeUsedInOneLine) {
  auto chosen = ChooseDevices(Wanted("auto"));
  ASSERT_THAT(chosen, IsOk());
  EXPECT_THAT(chosen->names, ElementsAre("cpu:0"));
  EXPECT_EQ(chosen->note, "cuda:0 cannot be used: no driver; cpu:0 is used");
  // Asked for: nothing to say.
  chosen = ChooseDevices(Wanted("cpu"));
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->note, "");

  Cards() = {{"cuda:0", "", "old"}, {"cuda:1", "", ""}};
  chosen = ChooseDevices(Wanted("auto"));
  ASSERT_THAT(chosen, IsOk());
  EXPECT_THAT(chosen->names, ElementsAre("cuda:1"));
  EXPECT_EQ(chosen->note, "");
}

TEST_F(DeviceNamesTest, ANamedDeviceThatCannotBeUsedIsRefused) {
  EXPECT_THAT(Choose("cuda:0", {}, 0),
              Refused("--device=cuda:0: it cannot be used: no driver"));
  EXPECT_THAT(Choose("cuda", {}, 0),
              Refused("--device=cuda: cuda:0 cannot be used: no driver"));
  EXPECT_THAT(Choose("cuda:1", {}, 0), Refused("no device 'cuda:1'"));
  EXPECT_THAT(Choose("auto", {"cpu:0", "cuda:0"}, 0), Refused("no driver"));
  Cards() = {{"cuda:0", "", "old"}, {"cuda:1", "", ""}};
  EXPECT_THAT(Choose("cuda", {}, 2),
              Refused("--devices=2: backend 'cuda' has 1"));
}

TEST_F(DeviceNamesTest, SoftPlacementTakesTheCpuAndSaysSo) {
  struct Case {
    DeviceChoice choice;
    Names names;
  };
  const Case cases[] = {
      {Wanted("cuda"), {"cpu:0"}},
      {Wanted("cuda:5"), {"cpu:0"}},
      {Wanted("cpu:1000"), {"cpu:0"}},
      {Wanted("cuda", {}, 2), {"cpu:0", "cpu:1"}},
      {Wanted("auto", {"cpu:1", "cuda:0"}), {"cpu:0", "cpu:1"}},
  };
  for (Case test : cases) {
    test.choice.allow_soft_placement = true;
    const auto chosen = ChooseDevices(test.choice);
    ASSERT_THAT(chosen, IsOk()) << test.choice.device;
    EXPECT_EQ(chosen->names, test.names);
    EXPECT_THAT(chosen->note, HasSubstr("used, as --allow_soft_placement"));
  }
}

TEST_F(DeviceNamesTest, SoftPlacementForgivesNoMistake) {
  for (DeviceChoice choice :
       {Wanted("tpu"), Wanted("cuda:01"), Wanted("auto", {"cpu:0", "cpu:0"}),
        Wanted("cuda:0", {}, 2), Wanted("cuda", {}, 100000)}) {
    choice.allow_soft_placement = true;
    EXPECT_THAT(ChooseDevices(choice),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << choice.device;
  }
}

TEST_F(DeviceNamesTest, RefusesGpuOptionsOutOfRange) {
  DeviceChoice choice;
  choice.gpu.virtual_devices = 0;
  EXPECT_THAT(ChooseDevices(choice),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--gpu_virtual_devices=0")));
}

}  // namespace
}  // namespace muster
