#include "tests/worker/backend/cuda/fake_gpu.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/worker/backend/cuda/kernel_on_host.h"

namespace muster {
namespace {

FakeCuda::Options WithKernels(FakeCuda::Options options) {
  options.run_kernel = &RunOnHost;
  return options;
}

}  // namespace

FakeGpu::FakeGpu(FakeCuda::Options options)
    : cuda_(WithKernels(std::move(options))),
      cudnn_(
          [this](cudaStream_t stream, std::function<void()> work) {
            return cuda_.Enqueue(stream, std::move(work));
          },
          [this] { return cuda_.current_device(); }),
      cublas_(
          [this](cudaStream_t stream, std::function<void()> work) {
            return cuda_.Enqueue(stream, std::move(work));
          },
          [this] { return cuda_.current_device(); }),
      nccl_(cuda_.functions(),
            [this](cudaStream_t stream, std::function<void()> work,
                   std::function<bool()> ready) {
              return cuda_.Enqueue(stream, std::move(work), std::move(ready));
            }) {
  GpuFunctions functions;
  functions.cuda = cuda_.functions();
  functions.cudnn = cudnn_.functions();
  functions.cublas = cublas_.functions();
  functions.nccl = nccl_.functions();
  functions_ = calls_.Wrap(std::move(functions));
}

std::string FakeGpu::Leaks() const {
  std::string leaks;
  for (const std::string& of :
       {cuda_.Leaks(), cudnn_.Leaks(), cublas_.Leaks(), nccl_.Leaks()}) {
    if (of.empty()) continue;
    absl::StrAppend(&leaks, leaks.empty() ? "" : "; ", of);
  }
  return leaks;
}

}  // namespace muster
