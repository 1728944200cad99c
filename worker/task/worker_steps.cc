#include "worker/task/worker_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/training_text.h"
#include "worker/input/input_threads.h"
#include "worker/step/make_exchange.h"
#include "worker/task/shared_training.h"
#include "worker/task/worker_options.h"
#include "worker/tower/gradient_clipper.h"
#include "worker/training/training_spec.h"
#include "worker/training/update_place.h"

namespace muster {
namespace {

// How this worker reads the rows that are leased to it; the loop fills in the
// rest.
InputPipeline::Options MakeInputOptions(const PlacedTraining& placed,
                                        const WorkerTowers& towers,
                                        const WorkerData& data) {
  const InputSpec& input = placed.training().input();
  InputPipeline::Options options;
  options.seed = static_cast<uint64_t>(placed.training().seed());
  options.shuffle = input.shuffle();
  options.shuffle_buffer = input.shuffle_buffer();
  options.batch_size = towers.shape().batch_size;
  options.prefetch = input.prefetch();
  options.clock = placed.options().clock;
  options.bad_records = data.bad_records();
  options.threads = InputThreads(input, placed.options().compute_threads);
  return options;
}

// The text that all workers with layers must have alike: the training and how
// many towers. Where an update is one worker's step each may have its own
// number of rows; in a mean of several all would count alike.
std::string OwnText(const WorkerOptions& task, const BatchPlan& shape) {
  const ReplicationSpec& replication = task.training.replication();
  if (!replication.has_sync() && !replication.has_all_reduce()) {
    TrainingSpec training = task.training;
    training.mutable_input()->clear_batch_size();
    return SemanticText(training);
  }
  std::string text = SemanticText(task.training);
  if (task.cluster.is_all_reduce()) text += "replication: all_reduce\n";
  if (shape.towers > 1) {
    absl::StrAppend(&text, "towers: ", shape.towers, " (--devices)\n");
  }
  return text;
}

std::string RowsText(const PlacedTraining& placed, const WorkerData& data) {
  if (data.training_set() == nullptr) return "of a stream";
  return DescribeRowOrder(data.num_examples(),
                          placed.training().input().shuffle(),
                          placed.training().seed());
}

// As many as the input prepares, and one that is computed from the parameters
// of the step before.
int StepsAhead(const InputSpec& input, const BatchPlan& shape) {
  const int64_t batches = shape.accumulate_batches;
  return static_cast<int>(
      std::max<int64_t>((input.prefetch() + batches - 1) / batches, 1));
}

StepTraits DescribeSteps(const PlacedTraining& placed,
                         const WorkerTowers& towers, const WorkerData& data) {
  StepTraits traits;
  traits.shape = towers.shape();
  traits.num_examples = data.num_examples();
  if (data.training_set() == nullptr) traits.order = RowOrder::kStream;
  traits.leases_ahead = StepsAhead(placed.training().input(), traits.shape);
  traits.training_text = JoinTrainingText(
      {std::string(kLayersKind), OwnText(placed.options(), traits.shape),
       SharedTrainingText(placed, traits.shape, RowsText(placed, data))});
  traits.schema = data.schema();
  traits.training_set = data.training_set();
  traits.validation_set = data.validation_set();
  traits.test_set = data.test_set();
  traits.bad_records = data.bad_records();
  traits.model = &towers.model();
  traits.backend = std::string(towers.first().devices.own()->name());
  traits.device_titles = towers.titles();
  traits.own_devices = towers.own_devices();
  traits.values_source = absl::StrCat("seed ", placed.training().seed());
  return traits;
}

}  // namespace

WorkerSteps::WorkerSteps(const PlacedTraining& placed,
                         const WorkerTowers& towers, const WorkerData& data)
    : StepStage(placed, DescribeSteps(placed, towers, data)),
      towers_(towers),
      data_(data) {}

absl::StatusOr<std::unique_ptr<WorkerSteps>> WorkerSteps::Create(
    const PlacedTraining* placed, const WorkerTowers* towers,
    const WorkerData* data, WorkerLinks links) {
  auto steps = absl::WrapUnique(new WorkerSteps(*placed, *towers, *data));
  RETURN_IF_ERROR(steps->Connect(std::move(links)));
  ASSIGN_OR_RETURN(DeviceUpdate* const update, steps->PlaceParameterUpdates());
  RETURN_IF_ERROR(steps->CreateLoop(update));
  return steps;
}

absl::StatusOr<DeviceUpdate*> WorkerSteps::PlaceParameterUpdates() const {
  UpdateSite site;
  site.is_standalone = placed().options().cluster.empty();
  site.shape = towers_.shape();
  return PlaceUpdates(placed().training(), site, towers_.first(),
                      placed().update_rule(), placed().options().reporter);
}

absl::Status WorkerSteps::CreateLoop(DeviceUpdate* update) {
  TrainLoop::Options options;
  options.towers = towers_.group();
  options.data_set = data_.training_set();
  options.open_stream = data_.open_stream();
  options.clock = placed().options().clock;
  options.input = MakeInputOptions(placed(), towers_, data_);
  ASSIGN_OR_RETURN(
      const GradientClipper clipper,
      GradientClipper::Create(placed().training().gradient().clip()));
  if (clipper.clips()) {
    options.change_gradients = [clipper](auto gradients) {
      clipper.Clip(gradients);
    };
  }
  options.profiled = placed().options().profiled;
  set_exchange(MakeExchange(update, /*changes_gradients=*/clipper.clips()));
  options.exchange = exchange();
  ASSIGN_OR_RETURN(loop_, TrainLoop::Create(options));
  return absl::OkStatus();
}

std::unique_ptr<StepExchange> WorkerSteps::MakeExchange(
    DeviceUpdate* update, bool changes_gradients) const {
  const TrainingSpec& training = placed().training();
  ExchangeOptions options;
  options.client = client();
  options.towers = towers_.group();
  options.clock = placed().options().clock;
  options.update = update;
  options.replication = training.replication();
  // A device copies from the worker's own memory faster, and a codec changes
  // values.
  options.reads_rounds_in_place =
      towers_.first().devices.own()->streams() == nullptr &&
      training.pull().codec().empty();
  // In one process the shard would take the cores that still compute.
  options.may_push_early =
      !placed().options().cluster.empty() && !changes_gradients;
  options.hooks_read_parameters =
      training.log_tensors().every_steps() > 0 ||
      training.summary().histograms_every_steps() > 0;
  options.allow_non_finite = training.non_finite().allow();
  options.reporter = placed().options().reporter;
  return MakeStepExchange(options);
}

absl::StatusOr<std::vector<absl::Span<float>>> WorkerSteps::MakeInitialValues()
    const {
  CompiledModel& model = towers_.model();
  RETURN_IF_ERROR(model.InitializeParameters(
      static_cast<uint64_t>(placed().training().seed())));
  std::vector<absl::Span<float>> values;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    values.push_back(model.parameter(static_cast<int>(i)));
  }
  return values;
}

}  // namespace muster
