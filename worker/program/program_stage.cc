#include "worker/program/program_stage.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/rpc/training_text.h"
#include "worker/client/client_model.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/program/program_exchange.h"
#include "worker/step/ps_exchange.h"
#include "worker/task/kept_training.h"
#include "worker/task/shared_training.h"
#include "worker/task/worker_options.h"
#include "worker/tower/gradient_memory.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

// The device that a result.json names.
constexpr char kProgram[] = "program";

absl::Status CheckRows(const TrainedProgram& model) {
  const bool fits = model.step_rows >= 1 && model.step_rows <= model.epoch_rows;
  if (model.epoch_rows == 0 || fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("step_rows is ", model.step_rows, ", wanted 1 to the ",
                   model.epoch_rows, " of epoch_rows"));
}

std::vector<TensorDef> MakeTensorDefs(const TrainedProgram& model) {
  std::vector<TensorDef> tensors;
  for (const ProgramTensor& tensor : model.tensors) {
    TensorDef& made = tensors.emplace_back();
    made.set_name(tensor.name());
    *made.mutable_shape() = tensor.shape();
    made.set_dtype(FLOAT32);
    made.set_kind(tensor.is_state() ? STATE : TRAINABLE);
  }
  return tensors;
}

// Without epoch_rows a step is counted by what it reports.
BatchPlan PlanOf(const WorkerJob& job, const TrainedProgram& model) {
  BatchPlan shape;
  shape.batch_size = model.epoch_rows == 0 ? 1 : model.step_rows;
  shape.workers = static_cast<int64_t>(job.tasks.size());
  return shape;
}

// The text that all programs must have alike.
std::string OwnText(const WorkerJob& job, const TrainedProgram& model) {
  TrainingSpec training = job.options.training;
  training.clear_model();
  training.clear_input();
  std::string text = SemanticText(training);
  if (!model.settings.empty()) {
    absl::StrAppend(&text, "settings: ", absl::CEscape(model.settings), "\n");
  }
  return text;
}

std::string RowsText(const WorkerJob& job, const TrainedProgram& model) {
  if (model.epoch_rows == 0) return "of a program's own";
  return DescribeRowOrder(model.epoch_rows, !model.in_order,
                          job.options.training.seed());
}

DataSchema MakeSchema(const TrainedProgram& model) {
  DataSchema schema;
  schema.set_format(kProgramFormat);
  if (model.epoch_rows > 0) {
    schema.mutable_training()->set_rows(model.epoch_rows);
  }
  return schema;
}

StepTraits DescribeSteps(const PlacedTraining& placed,
                         const TrainedProgram& model) {
  StepTraits traits;
  traits.shape = PlanOf(placed.job(), model);
  traits.num_examples = model.epoch_rows;
  if (model.epoch_rows == 0) traits.order = RowOrder::kStream;
  traits.leases_ahead = std::max(model.steps_ahead, 0);
  traits.training_text =
      JoinTrainingText({std::string(kProgramKind), OwnText(placed.job(), model),
                        SharedTrainingText(placed, traits.shape,
                                           RowsText(placed.job(), model))});
  traits.schema = MakeSchema(model);
  traits.backend = kProgram;
  traits.device_titles = {kProgram};
  traits.own_devices = {kProgram};
  traits.values_source = "the program's values";
  return traits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PlacedTraining>> PlaceProgram(
    WorkerJob job, const TrainedProgram& model) {
  RETURN_IF_ERROR(CheckRows(model));
  const BatchPlan shape = PlanOf(job, model);
  const std::vector<TensorDef> tensors = MakeTensorDefs(model);
  return PlacedTraining::Create(
      std::move(job), {tensors, shape, model.epoch_rows, model.tables});
}

absl::StatusOr<std::unique_ptr<ProgramStage>> ProgramStage::Create(
    const PlacedTraining* placed, const TrainedProgram* model,
    ProgramSteps* steps, WorkerLinks links) {
  const WorkerOptions& task = placed->options();
  if (placed->job().is_chief() && !task.train_dir.empty()) {
    RETURN_IF_ERROR(CheckCanKeepTraining(task.train_dir));
  }
  auto stage = absl::WrapUnique(new ProgramStage(*placed, *model, steps));
  RETURN_IF_ERROR(stage->Connect(std::move(links)));
  std::unique_ptr<PsExchange> exchange = MakeProgramExchange(
      stage->client(), placed->training(), model->values, task.clock);
  steps->Connect(exchange.get(), stage->client(),
                 [made = stage.get()](int64_t model_epoch) {
                   return made->PullLast(model_epoch);
                 });
  if (placed->job().is_chief() && placed->training().replication().has_sync()) {
    stage->rounds_ = std::make_unique<RoundPauser>(
        task.clock, stage->coordination(), SenderOf(task));
  }
  stage->set_exchange(std::move(exchange));
  return stage;
}

ProgramStage::ProgramStage(const PlacedTraining& placed,
                           const TrainedProgram& model, ProgramSteps* steps)
    : StepStage(placed, DescribeSteps(placed, model)),
      model_(model),
      steps_(steps) {
  if (!placed.job().is_chief()) return;
  // The program's own are those of the newest step by the time that a new
  // training begins once more.
  initial_values_ = PlaceLike(model.values, &memory_);
  for (size_t i = 0; i < initial_values_.size(); ++i) {
    absl::c_copy(model.values[i], initial_values_[i].begin());
  }
}

absl::Status ProgramStage::PullLast(int64_t model_epoch) {
  std::vector<MutableTensorView> into;
  for (const absl::Span<float> value : model_.values) {
    into.push_back(MutableViewOf(value));
  }
  absl::Status status;
  if (rounds_ == nullptr) {
    // Values that the chief has read or saved are there without a token.
    status = client()->PullAndWait(into);
  } else {
    rounds_->Enter(model_epoch);
    status =
        rounds_->RunPaused([&](const StepToken& token, RoundPauser::Done done) {
          client()->PullThen(into, token, std::move(done));
        });
  }
  if (!status.ok()) {
    placed().options().reporter.Error(absl::StrCat(
        "bring the job's last values to the program: ", status.message(),
        "; its tensors may be of an update before"));
  }
  return status;
}

absl::Status ProgramStage::ReadNewestCheckpoint() const {
  PosixFileSystem file_system;
  ASSIGN_OR_RETURN(
      const CheckpointReader::Newest newest,
      CheckpointReader::OpenNewest(&file_system, placed().options().train_dir));
  const CheckpointReader& reader = *newest.reader;
  RETURN_IF_ERROR(CheckCompatible(reader.manifest(), placed().model().tensors,
                                  placed().model().definition.optimizer,
                                  placed().model().tables));
  for (size_t i = 0; i < model_.values.size(); ++i) {
    const absl::Span<float> value = model_.values[i];
    RETURN_IF_ERROR(reader.Read(
        model_.tensors[i].name(), /*slot=*/"",
        /*offset=*/0, static_cast<int64_t>(value.size()), value.data()));
  }
  return absl::OkStatus();
}

}  // namespace muster
