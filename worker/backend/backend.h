#ifndef WORKER_BACKEND_BACKEND_H_
#define WORKER_BACKEND_BACKEND_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/optimizer/update_rule.h"
#include "worker/backend/device_mean.h"
#include "worker/backend/device_rule.h"
#include "worker/backend/device_streams.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"

namespace muster {

// An implementation of the operations on one kind of device: the factory of
// primitives. Knows nothing of layers or models.
//
// A primitive states the layout of every operand. Convolution and dense choose
// theirs. The others follow: they are made for the layout that their input
// has, and state it again (or row-major, where they cannot follow it). The
// caller compares the stated layout with what it has and puts a reorder
// between where the two differ.
//
// Thread-safe for creation; a primitive is for one thread at a time. Where
// streams() is not null, a thread that creates or executes has called its
// MakeCurrent.
class Backend {
 public:
  using Created = absl::StatusOr<std::unique_ptr<Primitive>>;

  virtual ~Backend() = default;

  virtual absl::string_view name() const = 0;
  // The type of activations, parameters and gradients.
  virtual DataType dtype() const = 0;

  // The memory and order of a device of its own; null if operands are the
  // host's memory. Not null: every operand is memory of streams()->Allocate,
  // layouts are row-major or the backend's as elsewhere, and softmax
  // cross-entropy does not check labels.
  virtual DeviceStreams* streams() { return nullptr; }

  // The mean over devices of this kind, of which this is the first of
  // `members`; they outlive it. Null: they have no common way, and the host
  // makes the mean. Errors: those of the library that they have.
  virtual absl::StatusOr<std::unique_ptr<DeviceMean>> CreateMean(
      absl::Span<Backend* const> /*members*/) {
    return nullptr;
  }

  // `rule`, which outlives it, on the memory of streams(). Errors:
  // Unimplemented if the backend has none, or none for this rule.
  virtual absl::StatusOr<std::unique_ptr<DeviceRule>> CreateRule(
      const UpdateRule* /*rule*/) {
    return absl::UnimplementedError(absl::StrCat(
        "update on the device: the backend '", name(), "' has no rules"));
  }

  // The primitive of `operation` for `pass`. `layouts`: those that it follows,
  // as many and of such shapes as the operation's layout_shapes(); one that
  // chooses its own does not look at them. operation.h says for each which
  // they are.
  // Errors: InvalidArgument if the description is not valid, or the layouts are
  // others; Unimplemented if this backend cannot do it.
  virtual Created Create(const Operation& operation, Pass pass,
                         absl::Span<const MemoryLayout> layouts) = 0;

  // The layout of `count` tensors of `layout`, one behind another in memory, as
  // one of `count` times the rows; nullopt if that has none.
  virtual std::optional<MemoryLayout> Stacked(const MemoryLayout& layout,
                                              int64_t count) const {
    return StackRowMajor(layout, count);
  }
};

// The backend's primitive (Backend::Create), made while its device is the
// calling thread's. Errors: those of MakeCurrent, too.
Backend::Created CreatePrimitive(Backend* backend, const Operation& operation,
                                 Pass pass,
                                 absl::Span<const MemoryLayout> layouts);

// A device that a backend can run on.
struct Device {
  std::string name;         // "cpu:0"
  std::string description;  // "AVX2, 8 cores"
  // Why nothing can be computed on it, and what would help: "no driver: ...".
  // Empty: it is there.
  std::string unusable;
};

// The flags (--gpu_*) and the training's ComputeSpec about GPUs.
struct GpuOptions {
  // Tensor cores round the factors of float32 products to TF32.
  bool tf32 = true;
  // Products have bf16 factors; all memory stays float32.
  bool bf16 = false;
  // The part of a card's memory that its virtual devices may use together. 0 <
  // f <= 1; 1: all that is free.
  double memory_fraction = 1;
  // The same in bytes; 0: no such limit. The smaller one counts.
  int64_t memory_limit_bytes = 0;
  // Each card appears as so many devices, which share it.
  int virtual_devices = 1;
  // Folders, separated by colons, in which cuDNN, cuBLAS and NCCL are looked
  // for first.
  std::string library_path;
};

// Errors: InvalidArgument naming the flag that is out of range.
absl::Status CheckGpuOptions(const GpuOptions& options);

struct BackendOptions {
  // CPU threads that one primitive uses.
  int compute_threads = 1;
  // Which of the backend's devices: 1 for "cuda:1".
  int device_index = 0;
  // The most of the host's memory that a model may have on the device.
  int64_t device_memory_limit_bytes = std::numeric_limits<int64_t>::max();
  // For the cuda backend alone.
  GpuOptions gpu;
};

// How to make a backend, and where it could run.
struct BackendFactory {
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const BackendOptions&)>
      create;
  // Never empty: of a kind of device that this machine has none of, the first
  // is told as unusable.
  std::function<std::vector<Device>(const GpuOptions&)> devices;
  // Whether products can have bf16 factors (GpuOptions::bf16).
  bool bf16 = false;
};

struct BackendTag {
  static constexpr char kKind[] = "backend";
};
// Names: cpu, and cuda in builds with --config=cuda; in tests also ref. Link
// //worker/backend:backends for all.
using BackendRegistry = Registry<BackendTag, BackendFactory>;

// Makes a registered backend. Errors: NotFound with the known names;
// InvalidArgument if an option is out of range, or one of the training
// (compute.bf16) is more than the backend can do.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(
    absl::string_view name, const BackendOptions& options);

}  // namespace muster

#endif  // WORKER_BACKEND_BACKEND_H_
