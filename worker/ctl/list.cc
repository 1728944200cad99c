// musterctl list: what this program was linked with, and its attributes.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement_strategy.h"
#include "common/codec/codec.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_rule.h"
#include "worker/backend/backend.h"
#include "worker/ctl/verb.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/map/map_stage.h"
#include "worker/layer/layer.h"
#include "worker/metric/metric.h"
#include "worker/tower/device_names.h"

namespace muster {
namespace {

constexpr int64_t kBytesPerMb = int64_t{1} << 20;
// More than any card has, and few enough to be counted in bytes.
constexpr int64_t kMaxGpuMemoryMb = int64_t{1} << 30;

// Each line of `text`, moved in.
std::string Indent(absl::string_view text) {
  std::string indented;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&indented, "  ", line, "\n");
  }
  return indented;
}

std::string DescribeLayerTypes() {
  return absl::StrCat(DescribeLayers(),
                      "any of them that has parameters may have share: "
                      "\"conv1\" beside its attributes: it uses "
                      "the parameters of the layer conv1 instead of its own\n");
}

std::string DescribeOptimizers() {
  std::string text;
  for (const std::string& name : UpdateRuleNames()) {
    const auto attributes = UpdateRuleAttributes(name);
    absl::StrAppend(&text, name, "\n");
    if (attributes.ok()) {
      absl::StrAppend(&text, Indent(DescribeAttributes(*attributes)));
    }
  }
  return text;
}

std::string DescribePlacements() {
  std::string text;
  for (const std::string& name : PlacementRegistry::Names()) {
    const auto entry = PlacementRegistry::Find(name);
    absl::StrAppend(&text, name, ": ", entry.ok() ? entry->help : "", "\n");
  }
  absl::StrAppend(
      &text,
      "placement.partition cuts parameters of several blocks of 65536 elements "
      "into pieces that are placed by themselves: auto {} (default), none {}, "
      "fixed {parts}, max_bytes {bytes} or min_max {max_parts min_bytes}\n");
  return text;
}

std::string DescribeCodecs() {
  std::string text;
  for (const std::string& name : CodecRegistry::Names()) {
    const auto codec = CodecRegistry::Find(name);
    if (!codec.ok()) continue;
    absl::StrAppend(&text, name, ": ", EncodedBytes(*codec, 1),
                    " bytes a value, relative error at most ",
                    (*codec)->relative_error(), ", largest value ",
                    (*codec)->largest(), "\n");
  }
  absl::StrAppend(&text,
                  "with any of them, gradient.error_feedback adds what it took "
                  "from one gradient to the next; pull.codec is for the "
                  "parameters that steps are computed from\n");
  return text;
}

std::string DescribeDataSets() {
  std::string text;
  for (const std::string& name : DataSetRegistry::Names()) {
    const auto type = DataSetRegistry::Find(name);
    absl::StrAppend(&text, name, ": ", type.ok() ? type->help : "", "\n");
  }
  return text;
}

struct Kind {
  std::string title;
  std::function<std::string()> describe;
};

// In the order in which they are listed.
std::vector<Kind> Kinds(const GpuOptions& gpu) {
  return {{"Layers", &DescribeLayerTypes},
          {"Optimizers", &DescribeOptimizers},
          {"Schedules", &LearningRate::DescribeSchedules},
          {"Placements", &DescribePlacements},
          {"Codecs", &DescribeCodecs},
          {"Data sets", &DescribeDataSets},
          {"Stages", &DescribeMapStages},
          {"Metrics", &DescribeMetrics},
          {"Backends", [gpu] { return DescribeDevices(gpu); }}};
}

// Reads a flag that was given into `value`.
template <typename T>
absl::Status ReadNumber(const VerbCall& call, const std::string& name,
                        bool (*read)(absl::string_view, T*), T* value) {
  const std::string text = call.Flag(name);
  if (call.flags.count(name) == 0 || read(text, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " must be a number, found '", text, "'"));
}

absl::StatusOr<GpuOptions> GpuFlags(const VerbCall& call) {
  GpuOptions gpu;
  gpu.library_path = call.Flag("gpu_library_path");
  RETURN_IF_ERROR(ReadNumber<double>(call, "gpu_memory_fraction",
                                     &absl::SimpleAtod, &gpu.memory_fraction));
  int64_t limit_mb = 0;
  RETURN_IF_ERROR(ReadNumber<int64_t>(call, "gpu_memory_limit_mb",
                                      &absl::SimpleAtoi<int64_t>, &limit_mb));
  gpu.memory_limit_bytes =
      std::clamp<int64_t>(limit_mb, -1, kMaxGpuMemoryMb) * kBytesPerMb;
  RETURN_IF_ERROR(ReadNumber<int>(call, "gpu_virtual_devices",
                                  &absl::SimpleAtoi<int>,
                                  &gpu.virtual_devices));
  RETURN_IF_ERROR(CheckGpuOptions(gpu));
  RETURN_IF_ERROR(CheckGpuFlags(gpu));
  return gpu;
}

absl::Status List(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const GpuOptions gpu, GpuFlags(call));
  const std::string wanted = call.arguments.empty() ? "" : call.arguments[0];
  std::vector<std::string> known;
  bool found = false;
  for (const Kind& kind : Kinds(gpu)) {
    known.push_back(
        absl::StrReplaceAll(absl::AsciiStrToLower(kind.title), {{" ", "_"}}));
    if (!wanted.empty() && wanted != known.back()) continue;
    absl::StrAppend(&result->out, found ? "\n" : "", kind.title, "\n",
                    Indent(kind.describe()));
    found = true;
  }
  if (found) return absl::OkStatus();
  return absl::InvalidArgumentError(UnknownNameMessage("kind", wanted, known));
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "list", {"[KIND]",
             "names layers, optimizers, schedules, placements, codecs, data "
             "sets, stages,\n"
             "  metrics and backends.\n"
             "  With their attributes; of one kind, or of all.",
             {{"gpu_memory_fraction", "The same as the worker's."},
              {"gpu_memory_limit_mb", "The same as the worker's."},
              {"gpu_virtual_devices", "The same as the worker's."},
              {"gpu_library_path", "The same as the worker's."}},
             0,
             1,
             &List});

}  // namespace
}  // namespace muster
