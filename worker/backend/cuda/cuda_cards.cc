#include "worker/backend/cuda/cuda_cards.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// "13.0" of 13000.
std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string OlderDriver(const GpuFunctions& gpu) {
  int version = 0;
  const bool is_there =
      gpu.cuda.DriverGetVersion(&version) == cudaSuccess && version > 0;
  return absl::StrCat(
      is_there ? absl::StrCat("NVIDIA's driver is one for CUDA ",
                              VersionText(version))
               : "there is no driver of NVIDIA",
      "; install one for CUDA ", CUDART_VERSION / 1000, " or newer");
}

std::string Advice(const GpuFunctions& gpu, cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return OlderDriver(gpu);
    case cudaErrorNoDevice:
      return "there is no card, or CUDA_VISIBLE_DEVICES hides all of them "
             "(nvidia-smi -L lists them)";
    default:
      return "nvidia-smi may tell more";
  }
}

absl::Status NoCards(const GpuFunctions& gpu, cudaError_t error) {
  const absl::Status status = CudaError(gpu, error, "look for CUDA devices");
  return absl::UnavailableError(
      absl::StrCat(status.message(), "; ", Advice(gpu, error)));
}

absl::StatusOr<CudaCard> LookAt(const GpuFunctions& gpu, int ordinal) {
  cudaDeviceProp properties = {};
  RETURN_IF_ERROR(
      CheckCuda(gpu, gpu.cuda.GetDeviceProperties(&properties, ordinal),
                [&] { return absl::StrCat("look at CUDA device ", ordinal); }));
  CudaCard card;
  card.ordinal = ordinal;
  card.name = properties.name;
  card.major = properties.major;
  card.minor = properties.minor;
  card.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  if (std::make_pair(card.major, card.minor) <
      std::make_pair(kLeastMajor, kLeastMinor)) {
    card.unusable =
        absl::StrCat("compute capability ", card.major, ".", card.minor,
                     ": wanted ", kLeastMajor, ".", kLeastMinor, " or more");
  }
  return card;
}

}  // namespace

std::string CudaCard::Describe() const {
  return absl::StrFormat("%s, compute capability %d.%d, %.1f GiB", name, major,
                         minor, static_cast<double>(memory_bytes) / kGiB);
}

absl::StatusOr<std::vector<CudaCard>> ListCudaCards(const GpuFunctions& gpu) {
  int count = 0;
  cudaError_t error = gpu.cuda.GetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess) return NoCards(gpu, error);
  std::vector<CudaCard> cards;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(CudaCard card, LookAt(gpu, i));
    cards.push_back(std::move(card));
  }
  return cards;
}

}  // namespace muster
