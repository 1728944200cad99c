#include "worker/task/pipeline_dry_run.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/batch.h"
#include "worker/layer/counter_random.h"
#include "worker/tower/batch_plan.h"
#include "worker/training/replica_devices.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

absl::StatusOr<OpenedTowers> OpenOneTower(const PipelineDryRun& run) {
  const DeviceChoice& choice = run.device_choice;
  ASSIGN_OR_RETURN(const ChosenDevices devices, ChooseDevices(choice));
  const auto towers = static_cast<int>(devices.names.size());
  TowerSetup setup;
  setup.devices = {devices.names.front()};
  ASSIGN_OR_RETURN(setup.layers,
                   PlaceLayers(run.training.model(), choice, run.reporter));
  ASSIGN_OR_RETURN(setup.shape,
                   ResolveBatchPlan(run.training, towers, run.num_workers));
  setup.backend = MakeBackendOptions(run.training, choice.gpu,
                                     std::max(1, run.compute_threads / towers));
  setup.backend.device_memory_limit_bytes = choice.memory_limit_bytes;
  setup.reporter = run.reporter;
  return OpenTowers(run.training, setup);
}

// Uniform in [0, 1), of class 0.
absl::StatusOr<Batch> RandomBatch(const ModelSpec& spec,
                                  const CompiledModel& model) {
  const std::vector<int64_t> dims(spec.input_shape().begin(),
                                  spec.input_shape().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  Batch batch =
      MakeLabelledBatch(model.batch_size(), shape,
                        model.loss().reads_targets ? model.num_outputs() : 0);
  batch.rows = model.batch_size();
  if (model.is_weighted()) {
    batch.Add(kBatchWeights, FLOAT32, Shape(), batch.rows);
  }
  const CounterRandom random(/*seed=*/1, "dry run");
  const absl::Span<float> values = batch.input();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random.Bits(i) >> 40) * 0x1p-24f;
  }
  return batch;
}

}  // namespace

absl::StatusOr<std::string> RunPipelineDryRun(const PipelineDryRun& run) {
  ASSIGN_OR_RETURN(const OpenedTowers opened, OpenOneTower(run));
  CompiledModel& model = *opened.towers.front().model;
  if (!model.has_pipeline()) {
    return absl::InvalidArgumentError(
        "worker pipeline: the model has no pipeline; give it one with "
        "--set=model.pipeline.micro_batches=8");
  }
  RETURN_IF_ERROR(
      model.InitializeParameters(static_cast<uint64_t>(run.training.seed())));
  ASSIGN_OR_RETURN(const Batch batch, RandomBatch(run.training.model(), model));
  return model.MeasurePipeline(batch);
}

}  // namespace muster
