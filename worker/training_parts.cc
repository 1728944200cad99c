#include "worker/training_parts.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/create_data_set.h"
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

absl::StatusOr<std::vector<TowerParts>> OpenTowers(
    const TrainingSpec& training, const std::vector<std::string>& devices,
    const StepShape& shape, const BackendOptions& options,
    const std::function<void(const std::string&)>& say) {
  BackendOptions of_tower = options;
  of_tower.compute_threads =
      std::max(1, options.compute_threads / static_cast<int>(devices.size()));
  std::vector<TowerParts> opened;
  for (const std::string& device : devices) {
    TowerParts tower;
    tower.device = device;
    ASSIGN_OR_RETURN(tower.backend, OpenDevice(device, of_tower));
    CompileOptions compile;
    compile.backend = tower.backend.get();
    compile.batch_size = shape.batch_size;
    compile.use_graphs = training.compute().cuda_graphs();
    compile.say = say;
    if (!opened.empty()) compile.parameters_of = opened.front().model.get();
    ASSIGN_OR_RETURN(tower.model,
                     CompiledModel::Create(training.model(), compile));
    opened.push_back(std::move(tower));
  }
  return opened;
}

absl::StatusOr<std::unique_ptr<TowerGroup>> JoinTowers(
    const TrainingSpec& training, absl::Span<const TowerParts> towers,
    const GpuOptions& gpu) {
  TowerGroup::Options options;
  std::vector<std::string> devices;
  for (const TowerParts& tower : towers) {
    Tower::Options one;
    one.device = tower.device;
    one.model = tower.model.get();
    one.accumulate_batches =
        std::max(1, training.gradient().accumulate_batches());
    options.towers.push_back(one);
    devices.push_back(tower.device);
  }
  const std::string& controller = training.tower().controller_device();
  if (!controller.empty()) {
    ASSIGN_OR_RETURN(const std::string name,
                     ResolveDevice("tower.controller_device", controller, gpu));
    const auto found = absl::c_find(devices, name);
    if (found == devices.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tower.controller_device: '", controller,
                       "' is the device of no tower of this worker; it has ",
                       absl::StrJoin(devices, ", ")));
    }
    options.controller = static_cast<int>(found - devices.begin());
  }
  return std::make_unique<TowerGroup>(options);
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend) {
  CompileOptions compile;
  compile.backend = backend;
  compile.mode = CompileOptions::Mode::kEvaluate;
  compile.batch_size = training.evaluation().batch_size() > 0
                           ? training.evaluation().batch_size()
                           : training.input().batch_size();
  return CompiledModel::Create(training.model(), compile);
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split) {
  const std::vector<int64_t> dims(training.model().input_shape().begin(),
                                  training.model().input_shape().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  ASSIGN_OR_RETURN(
      std::unique_ptr<DataSet> data_set,
      CreateDataSet(training.input(), shape,
                    static_cast<uint64_t>(training.seed()), split));
  if (data_set->num_classes() <= model.num_classes()) return data_set;
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", data_set->num_classes(),
      " classes, the last layer of model '", training.model().name(), "' has ",
      model.num_classes(), " outputs: give it as many"));
}

}  // namespace muster
