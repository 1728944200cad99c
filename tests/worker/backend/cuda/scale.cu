#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/worker/backend/cuda/scale.h"

namespace muster {
namespace {

constexpr int kThreads = 256;

__global__ void ScaleKernel(float* values, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}

absl::Status ToStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(what, ": ", cudaGetErrorString(error)));
}

absl::Status Run(std::vector<float>& values, float factor, float* device) {
  const size_t bytes = values.size() * sizeof(float);
  const int n = static_cast<int>(values.size());
  absl::Status status =
      ToStatus(cudaMemcpy(device, values.data(), bytes, cudaMemcpyHostToDevice),
               "copying to the device");
  if (!status.ok()) return status;
  ScaleKernel<<<(n + kThreads - 1) / kThreads, kThreads>>>(device, n, factor);
  status = ToStatus(cudaGetLastError(), "launching ScaleKernel");
  if (!status.ok()) return status;
  return ToStatus(
      cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost),
      "copying from the device");
}

}  // namespace

absl::StatusOr<std::vector<float>> ScaleOnDevice(
    const std::vector<float>& values, float factor) {
  std::vector<float> result = values;
  float* device = nullptr;
  absl::Status status =
      ToStatus(cudaMalloc(&device, values.size() * sizeof(float)),
               "allocating on the device");
  if (!status.ok()) return status;
  status = Run(result, factor, device);
  cudaFree(device);
  if (!status.ok()) return status;
  return result;
}

}  // namespace muster
