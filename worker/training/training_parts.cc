#include "worker/training/training_parts.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/stream/create_stream.h"
#include "worker/tower/device_names.h"
#include "worker/training/class_outputs.h"

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

namespace {

// Any thread can make the mean for a device that computes in the host's memory.
absl::StatusOr<int> FindController(const TrainingSpec& training,
                                   const TowerSetup& setup) {
  constexpr char kField[] = "tower.controller_device";
  const std::string& controller = training.tower().controller_device();
  if (controller.empty()) return 0;
  ASSIGN_OR_RETURN(const std::string name,
                   ResolveDevice(kField, controller, setup.backend.gpu));
  const auto found = absl::c_find(setup.devices, name);
  if (found != setup.devices.end()) {
    return static_cast<int>(found - setup.devices.begin());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   OpenDevice(name, setup.backend));
  if (backend->streams() == nullptr) return TowerGroup::kNoTower;
  return absl::InvalidArgumentError(absl::StrCat(
      kField, ": '", controller,
      "' has memory of its own and is the device of no tower of this worker; "
      "it has ",
      absl::StrJoin(setup.devices, ", "), "; give one of these, or a cpu"));
}

absl::StatusOr<std::vector<TowerParts>> OpenReplicas(const TowerSetup& setup) {
  BackendOptions options = setup.backend;
  options.compute_threads = std::max(
      1, options.compute_threads / static_cast<int>(setup.devices.size()));
  std::vector<TowerParts> towers(setup.devices.size());
  for (size_t i = 0; i < setup.devices.size(); ++i) {
    ASSIGN_OR_RETURN(towers[i].devices,
                     OpenReplica(setup.devices[i], setup.layers, options));
  }
  return towers;
}

// Whether parts of a model are on several devices, or are joined on one: its
// gradients come together in the host's memory.
bool IsDivided(const TrainingSpec& training, const OpenedTowers& opened) {
  return opened.towers.front().devices.backends.size() > 1 ||
         absl::c_any_of(training.model().layer(), [](const LayerSpec& layer) {
           return layer.has_split();
         });
}

// Null if the devices are of several kinds, or the backend has none, or the
// mean is to be made elsewhere, or the towers are divided.
absl::StatusOr<std::unique_ptr<DeviceMean>> MakeMean(
    const TrainingSpec& training, const OpenedTowers& opened) {
  if (IsDivided(training, opened)) return nullptr;
  Backend* const first = opened.towers.front().devices.own();
  std::vector<Backend*> members;
  for (const TowerParts& tower : opened.towers) {
    members.push_back(tower.devices.own());
    if (members.back()->name() != first->name()) return nullptr;
  }
  if (members.size() == 1 || opened.controller == TowerGroup::kNoTower) {
    return nullptr;
  }
  return first->CreateMean(members);
}

}  // namespace

absl::StatusOr<OpenedTowers> OpenTowers(const TrainingSpec& training,
                                        const TowerSetup& setup) {
  OpenedTowers opened;
  ASSIGN_OR_RETURN(opened.controller, FindController(training, setup));
  ASSIGN_OR_RETURN(opened.towers, OpenReplicas(setup));
  ASSIGN_OR_RETURN(opened.mean, MakeMean(training, opened));
  if (training.compute().cuda_graphs() && IsDivided(training, opened) &&
      absl::c_any_of(opened.towers.front().devices.backends,
                     [](const auto& b) { return b->streams() != nullptr; })) {
    setup.reporter.Info(
        "compute.cuda_graphs is not possible for a model that is divided; each "
        "operation is launched by itself");
  }
  CompileOptions compile;
  compile.batch_size = setup.shape.batch_size;
  compile.weighted = HasWeights(training);
  compile.use_graphs = training.compute().cuda_graphs();
  compile.reporter = setup.reporter;
  compile.memory_limit_bytes = OwnMemoryLimit();
  compile.mean = opened.mean.get();
  for (size_t i = 0; i < opened.towers.size(); ++i) {
    opened.towers[i].devices.SetDevices(&compile);
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
    one.device = tower.devices.Title();
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
    const TrainingSpec& training, const ReplicaDevices& devices,
    int64_t taken_bytes) {
  CompileOptions compile;
  compile.memory_limit_bytes = OwnMemoryLimit() - taken_bytes;
  devices.SetDevices(&compile);
  compile.mode = CompileOptions::Mode::kEvaluate;
  compile.weighted = HasWeights(training);
  compile.batch_size = training.evaluation().batch_size() > 0
                           ? training.evaluation().batch_size()
                           : training.input().batch_size();
  return CompiledModel::Create(training.model(), compile);
}

namespace {

absl::StatusOr<Shape> InputShape(const TrainingSpec& training) {
  const std::vector<int64_t> dims(training.model().input_shape().begin(),
                                  training.model().input_shape().end());
  return Shape::Create(dims);
}

// Weights are the labels' companions: who asks for none, or has compiled a
// model without them, does not read them.
absl::StatusOr<LabelSpec> LabelsFor(const TrainingSpec& training,
                                    const CompiledModel& model,
                                    LabelKind kind) {
  LabelSpec labels;
  labels.kind = kind;
  if (kind == LabelKind::kTargets) labels.num_targets = model.num_outputs();
  labels.weighted = model.is_weighted() && kind != LabelKind::kNone;
  if (!labels.weighted || training.class_weight().empty()) return labels;
  if (kind == LabelKind::kTargets) {
    return absl::InvalidArgumentError(absl::StrCat(
        "class_weight: the loss of model '", training.model().name(),
        "' compares outputs with targets and has no classes: leave it out, or "
        "give rows a weight each by input.weight_column"));
  }
  labels.class_weights.assign(training.class_weight().begin(),
                              training.class_weight().end());
  return labels;
}

}  // namespace

bool HasWeights(const TrainingSpec& training) {
  return !training.class_weight().empty() ||
         !training.input().weight_column().empty();
}

LabelKind LabelsOf(const LossType& loss) {
  return loss.reads_targets ? LabelKind::kTargets : LabelKind::kClass;
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split,
    std::shared_ptr<const DataSchema> run, const ProgressOutput& output) {
  return OpenDataSet(training, model, split, LabelsOf(model.loss()),
                     std::move(run), output);
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split,
    LabelKind kind, std::shared_ptr<const DataSchema> run,
    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(const Shape shape, InputShape(training));
  ASSIGN_OR_RETURN(const LabelSpec labels, LabelsFor(training, model, kind));
  ASSIGN_OR_RETURN(std::unique_ptr<DataSet> data_set,
                   CreateDataSet(training.input(), shape,
                                 static_cast<uint64_t>(training.seed()), split,
                                 labels, std::move(run), output));
  RETURN_IF_ERROR(
      CheckOutputs(training, *data_set, model.num_outputs(), RunKind::kKnown));
  return data_set;
}

absl::StatusOr<OpenStream> OpenTrainingStream(
    const TrainingSpec& training, const CompiledModel& model,
    std::shared_ptr<const DataSchema> run) {
  ASSIGN_OR_RETURN(const Shape shape, InputShape(training));
  ASSIGN_OR_RETURN(const LabelSpec labels,
                   LabelsFor(training, model, LabelsOf(model.loss())));
  OpenStream open = [input = training.input(), shape, seed = training.seed(),
                     labels, num_classes = model.num_outputs(),
                     run = std::move(run)] {
    return CreateStream(input, shape, static_cast<uint64_t>(seed), labels,
                        num_classes, run);
  };
  RETURN_IF_ERROR(open().status());
  return open;
}

}  // namespace muster
