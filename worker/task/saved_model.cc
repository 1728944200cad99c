#include "worker/task/saved_model.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "worker/task/report_lines.h"
#include "worker/training/training_parts.h"

namespace muster {

absl::StatusOr<std::unique_ptr<SavedModel>> SavedModel::Create(
    const Options& options) {
  auto model = absl::WrapUnique(new SavedModel(options));
  RETURN_IF_ERROR(model->CreateModel());
  return model;
}

absl::Status SavedModel::CreateModel() {
  const DeviceChoice& choice = options_.device_choice;
  ASSIGN_OR_RETURN(const ChosenDevices devices, ChooseDevices(choice));
  if (!devices.note.empty()) options_.reporter.Info(devices.note);
  ASSIGN_OR_RETURN(
      const LayerPlacement layers,
      PlaceLayers(options_.training.model(), choice, options_.reporter));
  BackendOptions backend = MakeBackendOptions(options_.training, choice.gpu,
                                              options_.compute_threads);
  backend.device_memory_limit_bytes = choice.memory_limit_bytes;
  ASSIGN_OR_RETURN(devices_,
                   OpenReplica(devices.names.front(), layers, backend));
  ASSIGN_OR_RETURN(model_, CompileTestModel(options_.training, devices_,
                                            options_.taken_bytes));
  if (!options_.log_device_placement) return absl::OkStatus();
  ReportLines(model_->DescribePlan(devices_.names), options_.reporter);
  return absl::OkStatus();
}

absl::Status SavedModel::LoadCheckpoint(const CheckpointReader& reader) {
  RETURN_IF_ERROR(CheckCompatible(reader.manifest(), model_->parameters(),
                                  options_.training.optimizer()));
  for (size_t i = 0; i < model_->parameters().size(); ++i) {
    const absl::Span<float> values = model_->parameter(static_cast<int>(i));
    RETURN_IF_ERROR(reader.Read(
        model_->parameters()[i].name(), /*slot=*/"",
        /*offset=*/0, static_cast<int64_t>(values.size()), values.data()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SavedModel::LoadWeights(
    FileSystem* file_system, InitialWeights::Options options) {
  options.whole = true;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<InitialWeights> weights,
      InitialWeights::Open(file_system, options, model_->parameters()));
  for (const std::string& remark : weights->remarks()) {
    options_.reporter.Info(absl::StrCat("--init_from: ", remark));
  }
  for (size_t i = 0; i < model_->parameters().size(); ++i) {
    RETURN_IF_ERROR(weights->Read(i, model_->parameter(static_cast<int>(i))));
  }
  return weights->source();
}

absl::StatusOr<std::string> SavedModel::Load(
    FileSystem* file_system, const std::string& train_dir,
    const CheckpointChoice& choice, const InitialWeights::Options& weights) {
  if (weights.path.empty() == train_dir.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "using a trained model: wanted --train_dir=DIR, whose newest (or "
        "--checkpoint) is taken, or --init_from=FILE.safetensors, found ",
        train_dir.empty() ? "neither" : "both"));
  }
  if (weights.partial) {
    return absl::InvalidArgumentError(
        "--init_from_partial: a model that is used as it is needs all its "
        "parameters");
  }
  if (!weights.path.empty()) {
    if (choice.kind == CheckpointChoice::Kind::kNewest) {
      return LoadWeights(file_system, weights);
    }
    return absl::InvalidArgumentError(
        "--checkpoint: chooses among those of a --train_dir, and --init_from "
        "is given");
  }
  const absl::StatusOr<CheckpointReader::Newest> opened =
      OpenChosenCheckpoint(file_system, train_dir, choice);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("using a checkpoint of --train_dir=", train_dir, ": ",
                     opened.status().message()));
  }
  for (const std::string& warning : opened->warnings) {
    options_.reporter.Error(warning);
  }
  RETURN_IF_ERROR(LoadCheckpoint(*opened->reader));
  return opened->reader->path();
}

}  // namespace muster
