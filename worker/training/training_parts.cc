#include "worker/training/training_parts.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/tower/device_names.h"

namespace muster {

BackendOptions MakeBackendOptions(const TrainingSpec& training,
                                  const GpuOptions& gpu, int compute_threads) {
  BackendOptions options;
  options.compute_threads = compute_threads;
  options.gpu = gpu;
  options.gpu.tf32 = training.compute().tf32();
  options.gpu.bf16 = training.compute().bf16();
  return options;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    BackendOptions options) {
  options.device_index = IndexOfDevice(device);
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   CreateBackend(BackendOfDevice(device), options));
  if (backend->dtype() == FLOAT32) return backend;
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", device, ": training needs a float32 backend"));
}

namespace {

absl::StatusOr<int> FindController(const TrainingSpec& training,
                                   const std::vector<std::string>& devices,
                                   const GpuOptions& gpu) {
  const std::string& controller = training.tower().controller_device();
  if (controller.empty()) return 0;
  ASSIGN_OR_RETURN(const std::string name,
                   ResolveDevice("tower.controller_device", controller, gpu));
  const auto found = absl::c_find(devices, name);
  if (found != devices.end()) return static_cast<int>(found - devices.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("tower.controller_device: '", controller,
                   "' is the device of no tower of this worker; it has ",
                   absl::StrJoin(devices, ", ")));
}

absl::StatusOr<std::vector<TowerParts>> OpenBackends(
    const std::vector<std::string>& devices, BackendOptions options) {
  options.compute_threads =
      std::max(1, options.compute_threads / static_cast<int>(devices.size()));
  std::vector<TowerParts> towers(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    towers[i].device = devices[i];
    ASSIGN_OR_RETURN(towers[i].backend, OpenDevice(devices[i], options));
  }
  return towers;
}

// Null if the devices are of several kinds, or the backend has none.
absl::StatusOr<std::unique_ptr<DeviceMean>> MakeMean(
    const std::vector<TowerParts>& towers) {
  Backend& first = *towers.front().backend;
  std::vector<Backend*> members;
  for (const TowerParts& tower : towers) {
    if (tower.backend->name() != first.name()) return nullptr;
    members.push_back(tower.backend.get());
  }
  if (members.size() == 1) return nullptr;
  return first.CreateMean(members);
}

}  // namespace

absl::StatusOr<OpenedTowers> OpenTowers(const TrainingSpec& training,
                                        const std::vector<std::string>& devices,
                                        const BatchPlan& shape,
                                        const BackendOptions& options,
                                        const Reporter& reporter) {
  OpenedTowers opened;
  ASSIGN_OR_RETURN(opened.controller,
                   FindController(training, devices, options.gpu));
  ASSIGN_OR_RETURN(opened.towers, OpenBackends(devices, options));
  ASSIGN_OR_RETURN(opened.mean, MakeMean(opened.towers));
  CompileOptions compile;
  compile.batch_size = shape.batch_size;
  compile.use_graphs = training.compute().cuda_graphs();
  compile.reporter = reporter;
  compile.memory_limit_bytes = OwnMemoryLimit();
  compile.mean = opened.mean.get();
  for (size_t i = 0; i < opened.towers.size(); ++i) {
    compile.backend = opened.towers[i].backend.get();
    compile.mean_member = static_cast<int>(i);
    compile.keeps_mean =
        compile.mean == nullptr || compile.mean_member == opened.controller;
    ASSIGN_OR_RETURN(opened.towers[i].model,
                     CompiledModel::Create(training.model(), compile));
    compile.memory_limit_bytes -= opened.towers[i].model->memory_bytes();
    compile.parameters_of = opened.towers.front().model.get();
  }
  return opened;
}

int64_t MemoryBytes(const OpenedTowers& opened) {
  int64_t bytes = 0;
  for (const TowerParts& tower : opened.towers) {
    bytes += tower.model->memory_bytes();
  }
  return bytes;
}

std::unique_ptr<TowerGroup> JoinTowers(const TrainingSpec& training,
                                       const OpenedTowers& opened) {
  TowerGroup::Options options;
  for (const TowerParts& tower : opened.towers) {
    Tower::Options one;
    one.device = tower.device;
    one.model = tower.model.get();
    one.accumulate_batches =
        std::max(1, training.gradient().accumulate_batches());
    options.towers.push_back(one);
  }
  options.controller = opened.controller;
  options.devices_make_mean = opened.mean != nullptr;
  return std::make_unique<TowerGroup>(options);
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend, int64_t taken_bytes) {
  CompileOptions compile;
  compile.memory_limit_bytes = OwnMemoryLimit() - taken_bytes;
  compile.backend = backend;
  compile.mode = CompileOptions::Mode::kEvaluate;
  compile.batch_size = training.evaluation().batch_size() > 0
                           ? training.evaluation().batch_size()
                           : training.input().batch_size();
  return CompiledModel::Create(training.model(), compile);
}

LabelKind LabelsOf(const LossType& loss) {
  return loss.reads_targets ? LabelKind::kTargets : LabelKind::kClass;
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split) {
  return OpenDataSet(training, model, split, LabelsOf(model.loss()));
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split,
    LabelKind kind) {
  const std::vector<int64_t> dims(training.model().input_shape().begin(),
                                  training.model().input_shape().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  LabelSpec labels;
  labels.kind = kind;
  if (kind == LabelKind::kTargets) labels.num_targets = model.num_outputs();
  ASSIGN_OR_RETURN(
      std::unique_ptr<DataSet> data_set,
      CreateDataSet(training.input(), shape,
                    static_cast<uint64_t>(training.seed()), split, labels));
  if (data_set->num_classes() <= model.num_outputs()) return data_set;
  const std::string place = data_set->LargestLabelPlace();
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", data_set->num_classes(), " classes",
      place.empty() ? ""
                    : absl::StrCat(" (the label in ", place, " is ",
                                   data_set->num_classes() - 1, ")"),
      ", the last layer of model '", training.model().name(), "' has ",
      model.num_outputs(), " outputs: give it as many"));
}

}  // namespace muster
