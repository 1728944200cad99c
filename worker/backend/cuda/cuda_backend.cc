#include "worker/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/cuda_cards.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/nccl_mean.h"
#include "worker/backend/cuda/update_rule.h"

namespace muster {
namespace {

// cuDNN, cuBLASLt and kernels of our own on one device. float32 in memory.
class CudaBackend : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<CudaDevice> device)
      : device_(std::move(device)) {}

  absl::string_view name() const override { return "cuda"; }
  DataType dtype() const override { return FLOAT32; }
  DeviceStreams* streams() override { return &device_->streams(); }
  // By NCCL, on cards of their own.
  absl::StatusOr<std::unique_ptr<DeviceMean>> CreateMean(
      absl::Span<Backend* const> members) override {
    std::vector<CudaDevice*> devices;
    for (Backend* const member : members) {
      devices.push_back(static_cast<CudaBackend*>(member)->device_.get());
    }
    return NcclMean::Create(std::move(devices));
  }

  absl::StatusOr<std::unique_ptr<DeviceRule>> CreateRule(
      const UpdateRule* rule) override {
    return MakeCudaRule(device_.get(), rule);
  }

  Created Create(const Operation& operation, Pass pass,
                 absl::Span<const MemoryLayout> layouts) override {
    return CudaPrimitives::Create(*this, device_.get(), operation, pass,
                                  layouts);
  }

 private:
  const std::unique_ptr<CudaDevice> device_;
};

using Load =
    std::function<absl::StatusOr<const GpuFunctions*>(const std::string&)>;

std::string NameOf(int index) { return absl::StrCat("cuda:", index); }

// The memory that a device of this card may use; 0: all that is free.
int64_t MemoryLimit(const GpuOptions& options, const CudaCard& card) {
  const bool is_limited = options.memory_fraction < 1 ||
                          options.memory_limit_bytes > 0 ||
                          options.virtual_devices > 1;
  if (!is_limited) return 0;
  auto limit = static_cast<int64_t>(options.memory_fraction *
                                    static_cast<double>(card.memory_bytes));
  if (options.memory_limit_bytes > 0) {
    limit = std::min(limit, options.memory_limit_bytes);
  }
  return std::max<int64_t>(1, limit / options.virtual_devices);
}

absl::StatusOr<std::unique_ptr<Backend>> Open(const GpuFunctions* gpu,
                                              const BackendOptions& options) {
  const GpuOptions& wanted = options.gpu;
  ASSIGN_OR_RETURN(const std::vector<CudaCard> cards, ListCudaCards(*gpu));
  const size_t ordinal = options.device_index / wanted.virtual_devices;
  if (ordinal >= cards.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(options.device_index), ": there are ",
                     cards.size() * wanted.virtual_devices, " CUDA devices"));
  }
  const CudaCard& card = cards[ordinal];
  if (!card.unusable.empty()) {
    return absl::UnavailableError(
        absl::StrCat(NameOf(options.device_index), ": ", card.unusable));
  }
  CudaDevice::Options open;
  open.ordinal = card.ordinal;
  open.name = NameOf(options.device_index);
  open.precision.tf32 = wanted.tf32;
  open.precision.bf16 = wanted.bf16;
  open.memory_limit_bytes = MemoryLimit(wanted, card);
  ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
                   CudaDevice::Open(gpu, open));
  return std::make_unique<CudaBackend>(std::move(device));
}

Device None(const absl::Status& why) {
  Device device;
  device.name = NameOf(0);
  device.unusable = std::string(why.message());
  return device;
}

// "9.19.0" of 91900.
std::string VersionText(size_t version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

std::vector<Device> List(const absl::StatusOr<const GpuFunctions*>& gpu,
                         const GpuOptions& options) {
  if (!gpu.ok()) return {None(gpu.status())};
  const auto cards = ListCudaCards(**gpu);
  if (!cards.ok()) return {None(cards.status())};
  const std::string libraries =
      absl::StrCat(", cuDNN ", VersionText((*gpu)->cudnn.GetVersion()),
                   ", cuBLASLt ", VersionText((*gpu)->cublas.GetVersion()));
  std::vector<Device> devices;
  for (const CudaCard& card : *cards) {
    for (int part = 1; part <= options.virtual_devices; ++part) {
      Device device;
      device.name = NameOf(static_cast<int>(devices.size()));
      device.description = absl::StrCat(card.Describe(), libraries);
      device.unusable = card.unusable;
      if (options.virtual_devices > 1) {
        absl::StrAppend(&device.description, ", card ", card.ordinal, " part ",
                        part, " of ", options.virtual_devices);
      }
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

}  // namespace

BackendFactory MakeCudaFactory(Load load) {
  BackendFactory factory;
  factory.create = [load](const BackendOptions& options)
      -> absl::StatusOr<std::unique_ptr<Backend>> {
    ASSIGN_OR_RETURN(const GpuFunctions* const gpu,
                     load(options.gpu.library_path));
    return Open(gpu, options);
  };
  factory.devices = [load](const GpuOptions& options) {
    return List(load(options.library_path), options);
  };
  factory.bf16 = true;
  return factory;
}

}  // namespace muster
