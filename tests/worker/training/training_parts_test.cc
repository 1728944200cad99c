#include "worker/training/training_parts.h"

#include <memory>
#include <utility>

#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The options of each backend "recording" that was made.
std::vector<BackendOptions>& Recorded() {
  static std::vector<BackendOptions>& options =
      *new std::vector<BackendOptions>();
  return options;
}

[[maybe_unused]] const bool kRegistered = BackendRegistry::Register(
    "recording", {[](const BackendOptions& options) {
                    Recorded().push_back(options);
                    BackendOptions of_ref = options;
                    of_ref.gpu = GpuOptions();
                    return CreateBackend("ref", of_ref);
                  },
                  [](const GpuOptions&) {
                    return std::vector<Device>{{"recording:0", "", ""}};
                  },
                  /*bf16=*/true});

// A device that captures nothing, so that a model which tries to says so.
[[maybe_unused]] const bool kFakeRegistered = BackendRegistry::Register(
    "fake_device", {[](const BackendOptions& options)
                        -> absl::StatusOr<std::unique_ptr<Backend>> {
                      ASSIGN_OR_RETURN(std::unique_ptr<Backend> ref,
                                       CreateBackend("ref", options));
                      auto device = std::make_unique<FakeDevice>(std::move(ref),
                                                                 /*seed=*/1);
                      device->streams()->FailCaptures();
                      return device;
                    },
                    [](const GpuOptions&) {
                      return std::vector<Device>{{"fake_device:0", "", ""}};
                    }});

class TrainingPartsTest : public testing::Test {
 protected:
  TrainingPartsTest() {
    *training_.mutable_model() = ParseModel(
        "input_shape: [5] "
        "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
        "layer { name: 'loss' type: 'softmax_cross_entropy' }");
    gpu_.memory_fraction = 0.5;
    gpu_.memory_limit_bytes = 4096;
    gpu_.virtual_devices = 2;
    gpu_.library_path = "/somewhere";
    shape_.batch_size = 4;
    Recorded().clear();
  }

  TowerSetup MakeSetup(const std::vector<std::string>& devices,
                       int compute_threads, const Reporter& reporter = {}) {
    TowerSetup setup;
    setup.devices = devices;
    setup.shape = shape_;
    setup.backend = MakeBackendOptions(training_, gpu_, compute_threads);
    setup.reporter = reporter;
    return setup;
  }

  // The lines said in three steps on the device that captures nothing.
  std::vector<std::string> SaidOnFakeDevice() {
    ReportedLines said;
    auto towers =
        OpenTowers(training_, MakeSetup({"fake_device:0"}, 1, said.reporter()));
    EXPECT_THAT(towers, IsOk());
    if (!towers.ok()) return said.lines();
    const Batch batch = MakeBatch(/*rows=*/4, /*example_elements=*/5,
                                  /*classes=*/3, /*seed=*/1);
    for (int step = 0; step < 3; ++step) {
      EXPECT_THAT(towers->towers.front().model->Step(batch, step), IsOk());
    }
    return said.lines();
  }

  TrainingSpec training_;
  GpuOptions gpu_;
  BatchPlan shape_;
};

TEST_F(TrainingPartsTest, FlagsAndFieldsReachEachBackend) {
  training_.mutable_compute()->set_bf16(true);
  training_.mutable_compute()->set_tf32(false);
  const auto towers = OpenTowers(
      training_,
      MakeSetup({"recording:3", "recording:7"}, /*compute_threads=*/5));
  ASSERT_THAT(towers, IsOk());
  ASSERT_EQ(Recorded().size(), 2);
  EXPECT_EQ(Recorded()[0].device_index, 3);
  EXPECT_EQ(Recorded()[1].device_index, 7);
  for (const BackendOptions& options : Recorded()) {
    EXPECT_EQ(options.compute_threads, 2);
    EXPECT_TRUE(options.gpu.bf16);
    EXPECT_FALSE(options.gpu.tf32);
    EXPECT_EQ(options.gpu.memory_fraction, 0.5);
    EXPECT_EQ(options.gpu.memory_limit_bytes, 4096);
    EXPECT_EQ(options.gpu.virtual_devices, 2);
    EXPECT_EQ(options.gpu.library_path, "/somewhere");
  }
}

TEST_F(TrainingPartsTest, ClassWeightsOfALossOfTargets_AreRefused) {
  training_.mutable_model()->mutable_layer(1)->set_type("mean_squared_error");
  training_.mutable_input()->set_type("synthetic");
  training_.add_class_weight()->set_class_("1");
  const auto towers = OpenTowers(training_, MakeSetup({"ref:0"}, 1));
  ASSERT_THAT(towers, IsOk());
  const CompiledModel& model = *towers->towers.front().model;
  EXPECT_TRUE(model.is_weighted());
  EXPECT_THAT(OpenDataSet(training_, model, Split::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("class_weight: the loss")));
}

TEST_F(TrainingPartsTest, GraphsAreCapturedUnlessTheTrainingSaysNo) {
  training_.mutable_compute()->set_cuda_graphs(true);
  EXPECT_THAT(SaidOnFakeDevice(), ElementsAre(HasSubstr("captured")));
  training_.mutable_compute()->set_cuda_graphs(false);
  EXPECT_THAT(SaidOnFakeDevice(), IsEmpty());
}

TEST_F(TrainingPartsTest, TheControllerIsATowersDeviceOrInTheHostsMemory) {
  training_.mutable_tower()->set_controller_device("/cpu:3");
  auto towers = OpenTowers(training_, MakeSetup({"ref:0", "ref:1"}, 1));
  ASSERT_THAT(towers, IsOk());
  EXPECT_EQ(towers->controller, TowerGroup::kNoTower);
  training_.mutable_tower()->set_controller_device("ref:1");
  towers = OpenTowers(training_, MakeSetup({"ref:0", "ref:1"}, 1));
  ASSERT_THAT(towers, IsOk());
  EXPECT_EQ(towers->controller, 1);
  training_.mutable_tower()->set_controller_device("fake_device:0");
  EXPECT_THAT(
      OpenTowers(training_, MakeSetup({"ref:0", "ref:1"}, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tower.controller_device: 'fake_device:0' has memory "
                         "of its own and is the device of no tower")));
}

TEST_F(TrainingPartsTest, DividedTowersMakeTheirMeanOnTheHostWithoutGraphs) {
  training_.mutable_compute()->set_cuda_graphs(true);
  ReportedLines said;
  TowerSetup setup =
      MakeSetup({"fake_device:0", "fake_device:1"}, 1, said.reporter());
  EXPECT_NE(OpenTowers(training_, setup)->mean, nullptr);
  EXPECT_THAT(said.lines(), IsEmpty());
  setup.layers = {{{"logits", CompileOptions::kWholeLayer}, "ref:1"}};
  const auto towers = OpenTowers(training_, setup);
  ASSERT_THAT(towers, IsOk());
  EXPECT_EQ(towers->mean, nullptr);
  EXPECT_TRUE(towers->towers.front().model->is_divided());
  EXPECT_THAT(said.lines(), ElementsAre(HasSubstr("compute.cuda_graphs")));
  training_.mutable_model()->mutable_layer(0)->mutable_split()->set_parts(3);
  setup.layers = {};
  EXPECT_EQ(OpenTowers(training_, setup)->mean, nullptr);
}

TEST_F(TrainingPartsTest, EachTowerIsASetOfDevices) {
  TowerSetup setup = MakeSetup({"ref:0", "ref:2"}, 1);
  setup.layers = {{{"logits", CompileOptions::kWholeLayer}, "ref:1"}};
  const auto towers = OpenTowers(training_, setup);
  ASSERT_THAT(towers, IsOk());
  EXPECT_EQ(towers->towers[0].devices.Title(), "ref:0+ref:1");
  EXPECT_EQ(towers->towers[1].devices.Title(), "ref:2+ref:1");
}

}  // namespace
}  // namespace muster
