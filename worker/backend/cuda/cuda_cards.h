#ifndef WORKER_BACKEND_CUDA_CUDA_CARDS_H_
#define WORKER_BACKEND_CUDA_CUDA_CARDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// A card that CUDA sees, after CUDA_VISIBLE_DEVICES.
struct CudaCard {
  int ordinal = 0;
  // "NVIDIA H100 80GB HBM3"
  std::string name;
  // Compute capability: 9.0.
  int major = 0;
  int minor = 0;
  int64_t memory_bytes = 0;
  // Why its kernels would not run; empty: they do.
  std::string unusable;

  // "NVIDIA H100 80GB HBM3, compute capability 9.0, 79.6 GiB"
  std::string Describe() const;
};

// The least compute capability that kernels are compiled for (cuda.bzl).
constexpr int kLeastMajor = 7;
constexpr int kLeastMinor = 5;

// Every card, at least one. Errors: Unavailable with what is missing (driver,
// card, permission) and what to do.
absl::StatusOr<std::vector<CudaCard>> ListCudaCards(const GpuFunctions& gpu);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_CARDS_H_
