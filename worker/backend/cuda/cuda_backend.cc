#include "worker/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/check_layout.h"
#include "worker/backend/cuda/cuda_cards.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/cuda_primitives.h"
#include "worker/backend/cuda/nccl_mean.h"

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

  Created CreateReorder(const MemoryLayout& from,
                        const MemoryLayout& to) override {
    RETURN_IF_ERROR(CheckReorder(from, to, dtype()));
    return MakeCudaReorder(device_.get(), from, to);
  }
  Created CreateConv2dForward(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaConv2dForward(device_.get(), desc);
  }
  Created CreateConv2dBackwardData(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaConv2dBackwardData(device_.get(), desc);
  }
  Created CreateConv2dBackwardWeights(const Conv2dDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaConv2dBackwardWeights(device_.get(), desc);
  }
  Created CreateDenseForward(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaDenseForward(device_.get(), desc);
  }
  Created CreateDenseBackwardData(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaDenseBackwardData(device_.get(), desc);
  }
  Created CreateDenseBackwardWeights(const DenseDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaDenseBackwardWeights(device_.get(), desc);
  }
  Created CreateActivationForward(const ActivationDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(CheckLayout("activation", src, dtype(), src.shape));
    return MakeCudaActivationForward(device_.get(), desc, src);
  }
  Created CreateActivationBackward(const ActivationDesc& desc,
                                   const MemoryLayout& dst) override {
    RETURN_IF_ERROR(CheckLayout("activation", dst, dtype(), dst.shape));
    return MakeCudaActivationBackward(device_.get(), desc, dst);
  }
  Created CreatePoolForward(const PoolDesc& desc,
                            const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return MakeCudaPoolForward(device_.get(), desc, src);
  }
  Created CreatePoolBackward(const PoolDesc& desc,
                             const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("pool", src, dtype(), desc.src_shape()));
    return MakeCudaPoolBackward(device_.get(), desc, src);
  }
  Created CreateDropoutForward(const DropoutDesc& desc,
                               const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeCudaDropoutForward(device_.get(), desc);
  }
  Created CreateDropoutBackward(const DropoutDesc& desc,
                                const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("dropout", src, dtype(), desc.shape));
    return MakeCudaDropoutBackward(device_.get(), desc);
  }
  Created CreateBatchNormForward(const BatchNormDesc& desc,
                                 const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return MakeCudaBatchNormForward(device_.get(), desc, src);
  }
  Created CreateBatchNormBackward(const BatchNormDesc& desc,
                                  const MemoryLayout& src) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("batch norm", src, dtype(), desc.src_shape()));
    return MakeCudaBatchNormBackward(device_.get(), desc, src);
  }
  Created CreateAdd(const AddDesc& desc,
                    absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCudaAdd(device_.get(), desc, srcs[0]);
  }
  Created CreateConcatForward(const ConcatDesc& desc,
                              absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCudaConcatForward(device_.get(), desc, srcs);
  }
  Created CreateConcatBackward(const ConcatDesc& desc,
                               absl::Span<const MemoryLayout> srcs) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayouts(desc, dtype(), srcs));
    return MakeCudaConcatBackward(device_.get(), desc, srcs);
  }
  Created CreateSoftmaxCrossEntropy(
      const SoftmaxCrossEntropyDesc& desc) override {
    RETURN_IF_ERROR(desc.Validate());
    return MakeCudaSoftmaxCrossEntropy(device_.get(), desc);
  }
  Created CreateL2Penalty(const L2PenaltyDesc& desc,
                          const MemoryLayout& weights) override {
    RETURN_IF_ERROR(desc.Validate());
    RETURN_IF_ERROR(CheckLayout("L2 penalty", weights, dtype(), desc.shape));
    return MakeCudaL2Penalty(device_.get(), desc, weights);
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
