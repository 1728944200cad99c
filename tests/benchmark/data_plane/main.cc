// Measures one figure of the data plane, and prints it as one line of JSON:
//   bazel run //tests/benchmark/data_plane -- --figure=push_pull --link=grpc
// scripts/bench.sh runs it for each figure of its table.
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/config/command_line.h"
#include "common/optimizer/update_rule.h"
#include "common/process/exit_code.h"
#include "common/process/process_setup.h"
#include "common/rpc/protocol.h"
#include "spdlog/spdlog.h"
#include "tests/benchmark/data_plane/bare_apply.h"
#include "tests/benchmark/data_plane/burst.h"
#include "tests/benchmark/data_plane/device_copy.h"
#include "tests/benchmark/data_plane/hand_off.h"
#include "tests/benchmark/data_plane/memory_copy.h"
#include "tests/benchmark/data_plane/parameter_steps.h"
#include "tests/benchmark/data_plane/plain_rpc.h"
#include "tests/benchmark/data_plane/raw_tcp.h"
#include "tests/benchmark/data_plane/shards.h"
#include "tests/benchmark/data_plane/workload.h"

ABSL_FLAG(
    std::string, figure, "",
    "all_reduce, apply, apply_bound, hand_off_parked, hand_off_spinning, "
    "memcpy, plain_rpc, push, push_in_place, push_pull, raw_tcp, to_device "
    "or to_host (of a GPU).");
ABSL_FLAG(int64_t, bytes, 13107200, "float32 bytes of all tensors, one way.");
ABSL_FLAG(int, tensors, 8, "Tensors that they are cut into (push...).");
ABSL_FLAG(int, workers, 1, "Workers at the same time (push...).");
ABSL_FLAG(int, shards, 1, "Shards, a process each (push...).");
ABSL_FLAG(int64_t, part_bytes, 0,
          "Largest part; 0: the client's own choice (push...).");
ABSL_FLAG(int, window_parts, 0,
          "Parts on their way to a shard; 0: the same (push...).");
ABSL_FLAG(std::string, link, "grpc",
          "grpc, tcp, shared_memory or in_process (push...).");
ABSL_FLAG(std::string, codec, "",
          "Of the gradients and of the values that they bring: a name of "
          "common/codec, or nothing for float32.");
ABSL_FLAG(std::string, optimizer, "adam",
          "Update rule; nothing for none (plain_rpc).");
ABSL_FLAG(bool, tls, false,
          "Mutual TLS, with certificates made for the run by the openssl "
          "command (push...; not in_process).");
ABSL_FLAG(std::string, tls_folder, "",
          "For the program itself, with --serve: where the certificates are.");
ABSL_FLAG(std::string, server_host, "127.0.0.1",
          "The address of the shards (push...; not in_process).");
ABSL_FLAG(std::string, server_netns, "",
          "The network namespace of the shards, as `ip netns` names it; "
          "nothing: this one (the same).");
ABSL_FLAG(bool, keep_freed_memory, true,
          "Keep the memory of freed tensors, as ps_server and worker do.");
ABSL_FLAG(absl::Duration, time, absl::Milliseconds(500),
          "Repeat at least so long.");
ABSL_FLAG(int, min_steps, 5, "Repeat at least so often.");
ABSL_FLAG(std::string, serve, "",
          "For the program itself: be the other end of a figure.");
ABSL_FLAG(bool, list_optimizers, false,
          "Print the name of every update rule, and end.");
ABSL_FLAG(bool, list_codecs, false, "Print the name of every codec, and end.");

namespace muster {
namespace {

// A tensor's offsets and sizes must not overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int kMaxTasks = 64;

using MakeFunction = std::function<absl::StatusOr<std::unique_ptr<Workload>>(
    const WorkloadOptions&)>;
using ServeFunction = std::function<absl::Status(const WorkloadOptions&)>;

struct Figure {
  MakeFunction make;
  // Takes --workers, --shards, --tensors and --link.
  bool has_shards = false;
  // A step is one of all workers together.
  bool is_together = false;
};

const std::map<std::string, Figure>& Figures() {
  static const auto& figures = *new std::map<std::string, Figure>{
      {"memcpy", {MakeMemoryCopy}},
      {"raw_tcp", {MakeRawTcp}},
      {"hand_off_spinning",
       {[](const WorkloadOptions&) { return MakeHandOff(Readers::kSpin); }}},
      {"hand_off_parked",
       {[](const WorkloadOptions&) { return MakeHandOff(Readers::kSleep); }}},
      {"plain_rpc", {MakePlainRpc}},
      {"apply", {MakeBareApply}},
      {"apply_bound", {MakeApplyBound}},
      {"push",
       {[](const WorkloadOptions& options) {
          return MakeParameterSteps(options, StepKind::kPush);
        },
        /*has_shards=*/true}},
      {"push_in_place",
       {[](const WorkloadOptions& options) {
          return MakeParameterSteps(options, StepKind::kPushInPlace);
        },
        /*has_shards=*/true}},
      {"push_pull",
       {[](const WorkloadOptions& options) {
          return MakeParameterSteps(options, StepKind::kPushAndPull);
        },
        /*has_shards=*/true}},
      {"all_reduce",
       {[](const WorkloadOptions& options) {
          return MakeParameterSteps(options, StepKind::kAllReduce);
        },
        /*has_shards=*/true, /*is_together=*/true}},
      {"to_device", {[](const WorkloadOptions& options) {
         return MakeDeviceCopy(options, CopyTo::kDevice);
       }}},
      {"to_host", {[](const WorkloadOptions& options) {
         return MakeDeviceCopy(options, CopyTo::kHost);
       }}},
  };
  return figures;
}

const std::map<std::string, ServeFunction>& Servers() {
  static const auto& servers = *new std::map<std::string, ServeFunction>{
      {"raw_tcp", ServeRawTcp},
      {"hand_off_spinning",
       [](const WorkloadOptions&) { return ServeHandOff(Readers::kSpin); }},
      {"hand_off_parked",
       [](const WorkloadOptions&) { return ServeHandOff(Readers::kSleep); }},
      {"plain_rpc", ServePlainRpc},
      {"shard", ServeShard},
  };
  return servers;
}

template <typename Value>
absl::StatusOr<Value> FindByName(const std::map<std::string, Value>& all,
                                 const std::string& flag,
                                 const std::string& name) {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", name, ": wanted ",
      absl::StrJoin(all, ", ", [](std::string* out, const auto& known) {
        out->append(known.first);
      })));
}

absl::Status CheckRange(const char* flag, int64_t value, int64_t min,
                        int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": wanted ", min, " to ", max));
}

absl::StatusOr<WorkloadOptions> ReadOptions() {
  WorkloadOptions options;
  options.bytes = absl::GetFlag(FLAGS_bytes);
  options.tensors = absl::GetFlag(FLAGS_tensors);
  options.workers = absl::GetFlag(FLAGS_workers);
  options.shards = absl::GetFlag(FLAGS_shards);
  options.part_bytes = absl::GetFlag(FLAGS_part_bytes);
  options.window_parts = absl::GetFlag(FLAGS_window_parts);
  options.link = absl::GetFlag(FLAGS_link);
  options.codec = absl::GetFlag(FLAGS_codec);
  options.optimizer = absl::GetFlag(FLAGS_optimizer);
  options.keep_freed_memory = absl::GetFlag(FLAGS_keep_freed_memory);
  options.tls = absl::GetFlag(FLAGS_tls);
  options.tls_folder = absl::GetFlag(FLAGS_tls_folder);
  options.server_host = absl::GetFlag(FLAGS_server_host);
  options.server_netns = absl::GetFlag(FLAGS_server_netns);
  RETURN_IF_ERROR(CheckRange("bytes", options.bytes, 4, kMaxBytes));
  RETURN_IF_ERROR(CheckRange("tensors", options.tensors, 1, options.bytes / 4));
  RETURN_IF_ERROR(CheckRange("workers", options.workers, 1, kMaxTasks));
  RETURN_IF_ERROR(CheckRange("shards", options.shards, 1, kMaxTasks));
  RETURN_IF_ERROR(
      CheckRange("part_bytes", options.part_bytes, 0, kMaxPartBytes));
  RETURN_IF_ERROR(CheckRange("window_parts", options.window_parts, 0, 64));
  RETURN_IF_ERROR(FindCodec(options.codec).status());
  return options;
}

// The flags that mean something to the figure, and what was measured.
void Print(const std::string& name, const Figure& figure,
           const WorkloadOptions& options, const Workload& workload,
           const Burst& burst) {
  std::string line = absl::StrFormat(
      R"({"figure": "%s", "bytes": %d, "codec": "%s", "optimizer": "%s", )",
      name, options.bytes, options.codec, options.optimizer);
  if (figure.has_shards) {
    absl::StrAppendFormat(
        &line,
        R"("link": "%s", "tls": %s, "tensors": %d, "workers": %d, )"
        R"("shards": %d, )",
        options.link, options.tls ? "true" : "false", options.tensors,
        options.workers, options.shards);
  }
  const double median_s = burst.Quantile(0.5);
  const auto steps = static_cast<double>(burst.step_s.size());
  const int64_t bytes_per_step = workload.bytes_per_step();
  absl::StrAppendFormat(
      &line,
      R"("steps": %d, "bytes_per_step": %d, "bytes_per_s": %.6g, )"
      R"("cpu_s": %.6g, "mean_s": %.6g, "min_s": %.6g, "median_s": %.6g, )"
      R"("p99_s": %.6g, "max_s": %.6g})",
      burst.step_s.size(), bytes_per_step,
      static_cast<double>(bytes_per_step) *
          (figure.is_together ? 1 : options.workers) / median_s,
      burst.cpu_s / steps,
      std::accumulate(burst.step_s.begin(), burst.step_s.end(), 0.0) / steps,
      burst.step_s.front(), median_s, burst.Quantile(0.99),
      burst.step_s.back());
  std::printf("%s\n", line.c_str());
}

absl::Status Measure(const std::string& name, const Figure& figure,
                     WorkloadOptions options) {
  if (!figure.has_shards && (options.workers != 1 || options.shards != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--figure=", name, " has one worker and no shards"));
  }
  if (!figure.has_shards && options.tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("--figure=", name, " has no TLS"));
  }
  BurstOptions burst_options;
  burst_options.time = absl::GetFlag(FLAGS_time);
  burst_options.min_steps = absl::GetFlag(FLAGS_min_steps);
  RETURN_IF_ERROR(CheckRange("min_steps", burst_options.min_steps, 1, 1000000));
  ASSIGN_OR_RETURN(const std::unique_ptr<Workload> workload,
                   figure.make(options));
  ASSIGN_OR_RETURN(
      const Burst burst,
      RunBurst(burst_options, figure.is_together ? 1 : options.workers,
               workload.get()));
  Print(name, figure, options, *workload, burst);
  return absl::OkStatus();
}

absl::Status Run() {
  if (absl::GetFlag(FLAGS_list_optimizers)) {
    std::printf("%s\n", absl::StrJoin(UpdateRuleNames(), "\n").c_str());
    return absl::OkStatus();
  }
  if (absl::GetFlag(FLAGS_list_codecs)) {
    std::printf("%s\n", absl::StrJoin(CodecRegistry::Names(), "\n").c_str());
    return absl::OkStatus();
  }
  LockWithoutChecks();
  if (absl::GetFlag(FLAGS_keep_freed_memory)) KeepFreedMemory();
  ASSIGN_OR_RETURN(const WorkloadOptions options, ReadOptions());
  const std::string serve = absl::GetFlag(FLAGS_serve);
  if (!serve.empty()) {
    ASSIGN_OR_RETURN(const ServeFunction server,
                     FindByName(Servers(), "serve", serve));
    return server(options);
  }
  const std::string name = absl::GetFlag(FLAGS_figure);
  ASSIGN_OR_RETURN(const Figure figure, FindByName(Figures(), "figure", name));
  return Measure(name, figure, options);
}

int Main(int argc, char** argv) {
  CommandLineOptions options;
  options.program = "data_plane";
  options.summary = "Measures one figure of the data plane.";
  options.version = absl::StrCat("muster ", kMusterVersion);
  options.groups = {
      {"Figure", {"figure", "time", "min_steps", "serve"}},
      {"Work",
       {"bytes", "tensors", "workers", "shards", "part_bytes", "window_parts",
        "link", "codec", "optimizer", "tls", "tls_folder", "server_host",
        "server_netns", "keep_freed_memory"}},
      {"Lists", {"list_optimizers", "list_codecs"}}};
  const CommandLine line = ParseCommandLine(
      std::vector<std::string>(argv + 1, argv + argc), options);
  std::fputs(line.out.c_str(), stdout);
  std::fputs(line.error.c_str(), stderr);
  if (line.exit_code.has_value()) return *line.exit_code;
  spdlog::set_level(spdlog::level::warn);
  const absl::Status status = Run();
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "data_plane: %s\n",
               std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status)
             ? kExitBadConfig
             : kExitFailed;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
