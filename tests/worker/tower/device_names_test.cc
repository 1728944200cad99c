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

absl::StatusOr<Names> Choose(const std::string& device, const Names& devices,
                             int num_devices) {
  DeviceChoice choice;
  choice.device = device;
  choice.devices = devices;
  choice.num_devices = num_devices;
  return ChooseDevices(choice);
}

TEST(DeviceNamesTest, ABackendIsItsFirstDevice) {
  EXPECT_THAT(ResolveDevice("--device", "auto"), IsOkAndHolds("cpu:0"));
  EXPECT_THAT(ResolveDevice("--device", "ref"), IsOkAndHolds("ref:0"));
  EXPECT_THAT(ResolveDevice("--device", "cpu:1"), IsOkAndHolds("cpu:1"));
  EXPECT_EQ(BackendOfDevice("cpu:1"), "cpu");
}

TEST(DeviceNamesTest, WhatDoesNotExistIsRefusedWithAListOfWhatDoes) {
  for (const std::string name :
       {"tpu", "cpu:1000", "cpu:", "cpu:01", "cpu:-1", "", ":0"}) {
    EXPECT_THAT(ResolveDevice("--devices", name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--devices=" + name),
                               HasSubstr("cpu:0 to cpu:"),
                               HasSubstr("ref:0 to ref:"))));
  }
}

TEST(DeviceNamesTest, OneTowerByDefault) {
  EXPECT_THAT(Choose("auto", {}, 0), IsOkAndHolds(ElementsAre("cpu:0")));
  EXPECT_THAT(Choose("ref", {}, 1), IsOkAndHolds(ElementsAre("ref:0")));
  EXPECT_THAT(Choose("cpu:3", {}, 1), IsOkAndHolds(ElementsAre("cpu:3")));
}

TEST(DeviceNamesTest, ChoosesByNumberOrByName) {
  EXPECT_THAT(Choose("auto", {}, 2),
              IsOkAndHolds(ElementsAre("cpu:0", "cpu:1")));
  EXPECT_THAT(Choose("ref", {}, 2),
              IsOkAndHolds(ElementsAre("ref:0", "ref:1")));
  EXPECT_THAT(Choose("auto", {"cpu:2", "cpu:0"}, 0),
              IsOkAndHolds(ElementsAre("cpu:2", "cpu:0")));
  EXPECT_THAT(Choose("auto", {"cpu:2", "cpu:0"}, 2),
              IsOkAndHolds(ElementsAre("cpu:2", "cpu:0")));
}

TEST(DeviceNamesTest, RefusesChoicesThatContradictEachOther) {
  EXPECT_THAT(Choose("auto", {}, -1), Refused("--num_devices=-1"));
  EXPECT_THAT(Choose("auto", {}, 100000), Refused("--num_devices=100000"));
  EXPECT_THAT(Choose("cpu:1", {}, 2), Refused("it is one device"));
  EXPECT_THAT(Choose("cpu", {"cpu:0"}, 0), Refused("--device=cpu and"));
  EXPECT_THAT(Choose("auto", {"cpu:0"}, 2), Refused("--devices names 1"));
  EXPECT_THAT(Choose("auto", {"cpu", "cpu:0"}, 0), Refused("cpu:0 twice"));
  EXPECT_THAT(Choose("auto", {"cpu:0", "cpu:99999"}, 0),
              Refused("there is no device 'cpu:99999'"));
}

TEST(DeviceNamesTest, DescribesDevicesThatAreAlikeInOneLine) {
  const std::string text = DescribeDevices();
  EXPECT_THAT(text,
              AllOf(HasSubstr("cpu\n  cpu:0 to cpu:"),
                    HasSubstr("ref\n  ref:0 to ref:"), HasSubstr("oneDNN")));
}

}  // namespace
}  // namespace muster
