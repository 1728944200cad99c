#include "worker/model/pipeline_stages.h"

#include <algorithm>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The stage of `device`, which becomes the last one if there is none.
size_t StageOf(int device, std::vector<PipelineStage>* stages) {
  const auto found = absl::c_find_if(
      *stages,
      [device](const PipelineStage& stage) { return stage.device == device; });
  const auto index = static_cast<size_t>(found - stages->begin());
  if (found == stages->end()) stages->push_back({device, {}});
  return index;
}

// The maker of a value.
struct Maker {
  size_t stage = 0;
  std::string layer;
};

absl::Status RefuseStepBack(const ProgramOp& op, const Maker& maker,
                            absl::Span<const std::string> device_names,
                            int maker_device) {
  return absl::InvalidArgumentError(absl::StrCat(
      "layer '", op.name, "': model.pipeline: it is on ",
      device_names[op.device], " and reads '", maker.layer, "' on ",
      device_names[maker_device],
      ", a later stage; a stage's layers can read those of its own and of "
      "earlier stages alone: give it the device of '",
      maker.layer, "', or one that comes after it"));
}

bool HasBatchNorm(const Program& program) {
  return absl::c_any_of(program.ops, [](const ProgramOp& op) {
    const auto* step = std::get_if<BatchNormStep>(&op.desc);
    return step != nullptr && step->desc.phase == Phase::kTraining;
  });
}

absl::StatusOr<std::vector<PipelineStage>> FindStages(
    const Program& program, absl::Span<const std::string> device_names) {
  std::vector<PipelineStage> stages;
  std::vector<Maker> makers(program.values.size());
  for (const ProgramOp& op : program.ops) {
    const size_t stage = StageOf(op.device, &stages);
    for (const int src : op.srcs) {
      const Maker& maker = makers[src];
      if (maker.stage <= stage) continue;
      return RefuseStepBack(op, maker, device_names,
                            stages[maker.stage].device);
    }
    if (op.dst >= 0) makers[op.dst] = {stage, op.name};
    std::vector<std::string>& layers = stages[stage].layers;
    if (layers.empty() || layers.back() != op.name) layers.push_back(op.name);
  }
  if (stages.size() > 1) return stages;
  return absl::InvalidArgumentError(absl::StrCat(
      "model.pipeline: all layers, from '", program.ops.front().name, "' to '",
      program.ops.back().name, "', are on ",
      device_names[program.ops.front().device],
      ", which is one stage; give some layers another device, or leave the "
      "pipeline out"));
}

std::string TitleOf(const Program& micro_batch, const Pipeline& pipeline,
                    absl::Span<const std::string> device_names) {
  std::string text =
      absl::StrCat("pipeline: ", pipeline.micro_batches, " micro-batches of ",
                   micro_batch.values[0].dim(0), " rows");
  for (const PipelineStage& stage : pipeline.stages) {
    absl::StrAppend(
        &text, stage.device == pipeline.stages[0].device ? "; " : ", ",
        device_names[stage.device], " computes ", stage.layers.front());
    if (stage.layers.size() > 1) {
      absl::StrAppend(&text, " to ", stage.layers.back());
    }
  }
  if (HasBatchNorm(micro_batch)) {
    absl::StrAppend(&text,
                    "; batch norm takes the statistics of each micro-batch by "
                    "itself");
  }
  return text;
}

}  // namespace

absl::Status CheckMicroBatches(int micro_batches) {
  if (micro_batches >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model.pipeline.micro_batches: wanted 2 or more (0 for "
                   "none), found ",
                   micro_batches));
}

absl::Status CheckDivides(int micro_batches, int64_t batch_size) {
  if (batch_size % micro_batches == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.pipeline.micro_batches: a batch of ", batch_size,
      " rows cannot be divided into ", micro_batches, " equal parts"));
}

absl::StatusOr<Pipeline> FindPipeline(
    const Program& micro_batch, int micro_batches,
    absl::Span<const std::string> device_names) {
  Pipeline pipeline;
  pipeline.micro_batches = micro_batches;
  ASSIGN_OR_RETURN(pipeline.stages, FindStages(micro_batch, device_names));
  pipeline.title = TitleOf(micro_batch, pipeline, device_names);
  return pipeline;
}

}  // namespace muster
