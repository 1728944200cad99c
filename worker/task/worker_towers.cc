#include "worker/task/worker_towers.h"

#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/task/report_lines.h"
#include "worker/tower/device_names.h"

namespace muster {
namespace {

absl::StatusOr<TowerSetup> MakeSetup(const WorkerJob& job) {
  const WorkerOptions& options = job.options;
  const DeviceChoice& choice = options.device_choice;
  ASSIGN_OR_RETURN(const ChosenDevices devices, ChooseDevices(choice));
  if (!devices.note.empty()) options.reporter.Info(devices.note);
  TowerSetup setup;
  setup.devices = devices.names;
  ASSIGN_OR_RETURN(setup.shape,
                   ResolveBatchPlan(options.training,
                                    static_cast<int64_t>(devices.names.size()),
                                    static_cast<int64_t>(job.tasks.size())));
  ASSIGN_OR_RETURN(setup.layers, PlaceLayers(options.training.model(), choice,
                                             options.reporter));
  setup.backend =
      MakeBackendOptions(options.training, choice.gpu, options.compute_threads);
  setup.backend.device_memory_limit_bytes = choice.memory_limit_bytes;
  setup.reporter = options.reporter;
  return setup;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerTowers>> WorkerTowers::Create(
    const WorkerJob& job) {
  ASSIGN_OR_RETURN(const TowerSetup setup, MakeSetup(job));
  auto towers = absl::WrapUnique(new WorkerTowers());
  RETURN_IF_ERROR(towers->Open(job, setup));
  towers->ReportTowers(job.options);
  if (job.options.log_device_placement) {
    towers->ReportPlans(job.options.reporter);
  }
  return towers;
}

absl::Status WorkerTowers::Open(const WorkerJob& job, const TowerSetup& setup) {
  const TrainingSpec& training = job.options.training;
  shape_ = setup.shape;
  ASSIGN_OR_RETURN(opened_, OpenTowers(training, setup));
  RETURN_IF_ERROR(OpenTestDevices(job, setup));
  group_ = JoinTowers(training, opened_);
  return absl::OkStatus();
}

// In host memory a tower has a part of the threads, and an evaluation all; a
// device of its own is open, and its memory counted, once.
absl::Status WorkerTowers::OpenTestDevices(const WorkerJob& job,
                                           const TowerSetup& setup) {
  const ReplicaDevices& devices = first().devices;
  if (!job.is_chief() || shape_.towers == 1 ||
      devices.own()->streams() != nullptr) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(test_devices_, OpenReplica(devices.names.front(),
                                              setup.layers, setup.backend));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CompiledModel>> WorkerTowers::CompileForTest(
    const TrainingSpec& training) const {
  const ReplicaDevices& devices =
      test_devices_.backends.empty() ? first().devices : test_devices_;
  return CompileTestModel(training, devices, MemoryBytes(opened_));
}

std::vector<std::string> WorkerTowers::titles() const {
  std::vector<std::string> titles;
  for (const TowerParts& tower : opened_.towers) {
    titles.push_back(tower.devices.Title());
  }
  return titles;
}

std::vector<std::string> WorkerTowers::own_devices() const {
  std::vector<std::string> names;
  for (const TowerParts& tower : opened_.towers) {
    names.push_back(tower.devices.names.front());
  }
  return names;
}

void WorkerTowers::ReportTowers(const WorkerOptions& options) const {
  const std::vector<std::string> devices = titles();
  const CompiledModel& model = *first().model;
  if (model.has_pipeline()) options.reporter.Info(model.pipeline_title());
  if (shape_.towers == 1) {
    if (first().devices.names.size() == 1) return;
    return options.reporter.Info(
        absl::StrCat("layers are computed on ", devices.front()));
  }
  const std::string& controller = options.training.tower().controller_device();
  options.reporter.Info(
      absl::StrCat(shape_.towers, " towers on ", absl::StrJoin(devices, ", "),
                   ", each with batches of ", shape_.batch_size,
                   " rows; gradients are averaged ",
                   opened_.mean != nullptr ? "by the devices, for " : "on ",
                   controller.empty() ? devices.front() : controller));
}

void WorkerTowers::ReportPlans(const Reporter& reporter) const {
  for (const TowerParts& tower : opened_.towers) {
    ReportLines(tower.model->DescribePlan(tower.devices.names), reporter);
  }
}

}  // namespace muster
