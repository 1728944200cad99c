#include "worker/verb/device_flags.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "common/process/thread_supply.h"
#include "common/rpc/server/task_flags.h"
#include "spdlog/spdlog.h"
#include "worker/input/input_threads.h"

ABSL_FLAG(std::string, device, "auto",
          "What computes: a backend (cuda, cpu), one of its devices (cuda:1), "
          "or auto, the first of these that can be used.");
ABSL_FLAG(std::vector<std::string>, devices, {},
          "Several devices, each with a tower (a replica of the model) of this "
          "worker: --devices=cpu:0,cpu:1, or a number: the first so many of "
          "--device. `worker devices` prints all.");
ABSL_FLAG(bool, allow_soft_placement, false,
          "Compute on the cpu, and say so, where a named device is missing.");
ABSL_FLAG(bool, log_device_placement, false,
          "Print what computes each layer: device, implementation, memory.");
ABSL_FLAG(int64_t, device_memory_limit_mb, 0,
          "Memory of a model on each device that computes in the host's, in "
          "MiB; a model that wants more is refused. 0: no such limit.");
ABSL_FLAG(double, gpu_memory_fraction, 1,
          "Of a GPU's memory that may be used: 0.5 for half of it.");
ABSL_FLAG(int64_t, gpu_memory_limit_mb, 0,
          "Of a GPU's memory that may be used, in MiB. 0: no such limit.");
ABSL_FLAG(int, gpu_virtual_devices, 1,
          "Make so many devices of each GPU, which share its memory.");
ABSL_FLAG(
    std::string, gpu_library_path, "",
    "Folders, separated by colons, in which to look for cuDNN, cuBLAS and "
    "NCCL first.");
ABSL_FLAG(int, compute_threads, 0,
          "Threads that compute, divided among the towers. 0: the cores, or "
          "the quota of a cgroup, over the workers of this machine; at most "
          "OMP_NUM_THREADS and SLURM_CPUS_PER_TASK.");
ABSL_FLAG(std::string, cpus, "",
          "Cores to run on, a thread on each: 0-3,6. By default all.");

namespace muster {
namespace {

constexpr int64_t kBytesPerMb = int64_t{1} << 20;
// About as many as gRPC, input (its first), timers and signals have.
constexpr int kOtherThreads = 16;
// More than any card has, and few enough to be counted in bytes.
constexpr int64_t kMaxGpuMemoryMb = int64_t{1} << 30;

// --devices: names, or a number, "4".
absl::Status ReadDevices(DeviceChoice* choice) {
  const std::vector<std::string> devices = absl::GetFlag(FLAGS_devices);
  int count = 0;
  if (devices.size() != 1 || !absl::SimpleAtoi(devices.front(), &count)) {
    choice->devices = devices;
    return absl::OkStatus();
  }
  choice->num_devices = count;
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--devices: wanted names like cpu:0,cpu:1, or how many of "
                   "--device, 1 or more, found ",
                   count));
}

}  // namespace

FlagGroup DeviceFlagGroup() {
  return {"Device",
          {"device", "allow_soft_placement", "log_device_placement",
           "device_memory_limit_mb", "compute_threads", "cpus"}};
}

FlagGroup DevicesFlagGroup() {
  FlagGroup group = DeviceFlagGroup();
  group.flags.insert(group.flags.begin() + 1, "devices");
  return group;
}

FlagGroup GpuFlagGroup() {
  return {"GPU",
          {"gpu_memory_fraction", "gpu_memory_limit_mb", "gpu_virtual_devices",
           "gpu_library_path"}};
}

absl::StatusOr<GpuOptions> GpuFlags() {
  GpuOptions gpu;
  const int64_t limit_mb = absl::GetFlag(FLAGS_gpu_memory_limit_mb);
  gpu.memory_limit_bytes = std::min(limit_mb, kMaxGpuMemoryMb) * kBytesPerMb;
  gpu.memory_fraction = absl::GetFlag(FLAGS_gpu_memory_fraction);
  gpu.virtual_devices = absl::GetFlag(FLAGS_gpu_virtual_devices);
  gpu.library_path = absl::GetFlag(FLAGS_gpu_library_path);
  RETURN_IF_ERROR(CheckGpuOptions(gpu));
  RETURN_IF_ERROR(CheckGpuFlags(gpu));
  return gpu;
}

absl::StatusOr<DeviceChoice> DeviceFlags() {
  DeviceChoice choice;
  choice.device = absl::GetFlag(FLAGS_device);
  RETURN_IF_ERROR(ReadDevices(&choice));
  choice.allow_soft_placement = absl::GetFlag(FLAGS_allow_soft_placement);
  ASSIGN_OR_RETURN(choice.gpu, GpuFlags());
  const int64_t limit_mb = absl::GetFlag(FLAGS_device_memory_limit_mb);
  if (limit_mb < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device_memory_limit_mb: wanted 0 (no limit) or more, "
                     "found ",
                     limit_mb));
  }
  if (limit_mb > 0) {
    choice.memory_limit_bytes = SaturatingProduct(limit_mb, kBytesPerMb);
  }
  return choice;
}

absl::StatusOr<ComputeThreads> SetUpCores(const ResolvedCluster& cluster,
                                          const InputSpec& input) {
  const std::string cpus = absl::GetFlag(FLAGS_cpus);
  RETURN_IF_ERROR(PinToCpus(cpus));
  ThreadLimits limits = LimitsHere();
  limits.asked = absl::GetFlag(FLAGS_compute_threads);
  limits.cpus = cpus;
  if (limits.asked == 0 && cpus.empty()) {
    limits.tasks = TasksOfMachine(cluster.spec, cluster.task, &IsOwnHost);
  }
  limits.omp_num_threads = Environment("OMP_NUM_THREADS");
  limits.slurm_cpus_per_task = Environment("SLURM_CPUS_PER_TASK");
  ASSIGN_OR_RETURN(ComputeThreads threads, ChooseThreads(limits));
  if (!threads.warning.empty()) spdlog::warn("{}", threads.warning);
  // So many more threads apply gradients.
  const int of_ps = cluster.spec.is_all_reduce() ? threads.count : 0;
  RETURN_IF_ERROR(CheckThreads(threads.count +
                               InputThreads(input, threads.count) - 1 + of_ps +
                               kOtherThreads));
  return threads;
}

}  // namespace muster
