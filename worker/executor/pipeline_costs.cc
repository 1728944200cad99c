#include "worker/executor/pipeline_costs.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/model/buffer_placement.h"
#include "worker/model/device_bytes.h"

namespace muster {
namespace {

double Mebibytes(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

PipelineCosts::Layer* FindLayer(const Instruction& instruction,
                                PipelineCosts* costs) {
  const auto found =
      absl::c_find_if(costs->layers, [&](const PipelineCosts::Layer& layer) {
        return layer.name == instruction.name &&
               layer.device == instruction.device;
      });
  if (found != costs->layers.end()) return &*found;
  costs->layers.push_back({instruction.name, instruction.device, {}, {}});
  return &costs->layers.back();
}

std::string StageLines(const Pipeline& pipeline, const PipelineCosts& costs,
                       absl::Span<const std::string> device_names) {
  std::string text =
      absl::StrFormat("%-5s  %-8s  %10s  %11s  %14s  %15s  %8s  %s\n", "stage",
                      "device", "forward ms", "backward ms", "parameters MiB",
                      "activations MiB", "sent MiB", "layers");
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    const PipelineCosts::Stage& cost = costs.devices[stage.device];
    absl::StrAppendFormat(
        &text, "%-5d  %-8s  %10.2f  %11.2f  %14.2f  %15.2f  %8.2f  %s to %s\n",
        i, device_names[stage.device], Milliseconds(cost.forward),
        Milliseconds(cost.backward), Mebibytes(cost.parameter_bytes),
        Mebibytes(cost.arena_bytes), Mebibytes(cost.sent_bytes),
        stage.layers.front(), stage.layers.back());
  }
  return text;
}

std::string LayerLines(const PipelineCosts& costs,
                       absl::Span<const std::string> device_names) {
  std::string text = absl::StrFormat("%-20s  %-8s  %10s  %11s\n", "layer",
                                     "device", "forward ms", "backward ms");
  for (const PipelineCosts::Layer& layer : costs.layers) {
    absl::StrAppendFormat(&text, "%-20s  %-8s  %10.2f  %11.2f\n", layer.name,
                          device_names[layer.device],
                          Milliseconds(layer.forward),
                          Milliseconds(layer.backward));
  }
  return text;
}

}  // namespace

PipelineCosts FindPipelineCosts(const ExecutionPlan& plan,
                                size_t loss_instruction,
                                absl::Span<const absl::Duration> times,
                                absl::Span<const int64_t> sizes_bytes) {
  PipelineCosts costs;
  costs.devices.resize(plan.num_devices);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    PipelineCosts::Layer* const layer = FindLayer(instruction, &costs);
    PipelineCosts::Stage* const stage = &costs.devices[instruction.device];
    const bool forward = i <= loss_instruction;
    (forward ? layer->forward : layer->backward) += times[i];
    (forward ? stage->forward : stage->backward) += times[i];
  }
  const std::vector<int64_t> parameters =
      ParameterBytes(plan, sizes_bytes, /*copies=*/2);
  const std::vector<int64_t> sent = SentBytes(plan);
  const std::vector<int64_t> arenas = PlaceBuffers(plan).arena_bytes;
  for (size_t i = 0; i < costs.devices.size(); ++i) {
    costs.devices[i].parameter_bytes = parameters[i];
    costs.devices[i].arena_bytes = arenas[i];
    costs.devices[i].sent_bytes = sent[i];
  }
  return costs;
}

double TheoreticalBubble(size_t stages, int micro_batches) {
  const auto idle = static_cast<double>(stages - 1);
  return idle / (micro_batches + idle);
}

std::string PipelineTable(const Pipeline& pipeline, const PipelineCosts& costs,
                          absl::Span<const std::string> device_names) {
  absl::Duration all, slowest;
  for (const PipelineStage& stage : pipeline.stages) {
    all += costs.devices[stage.device].total();
    slowest = std::max(slowest, costs.devices[stage.device].total());
  }
  const double bubble =
      TheoreticalBubble(pipeline.stages.size(), pipeline.micro_batches);
  const double most = absl::FDivDuration(all, slowest);
  return absl::StrCat(
      pipeline.title, "\n", StageLines(pipeline, costs, device_names),
      absl::StrFormat("bubble in theory: %.3f of the time, (S - 1) / (M + S - "
                      "1) with S=%d stages and M=%d micro-batches\n",
                      bubble, pipeline.stages.size(), pipeline.micro_batches),
      absl::StrFormat("all stages %.2f ms, the slowest %.2f ms: at most %.2f "
                      "times as fast as one device, %.2f with the bubble\n\n",
                      Milliseconds(all), Milliseconds(slowest), most,
                      most * (1 - bubble)),
      LayerLines(costs, device_names));
}

}  // namespace muster
