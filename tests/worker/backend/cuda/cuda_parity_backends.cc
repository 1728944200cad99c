// The cuda backend on its first card, for the parity tests.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/backend/cuda/failing_calls.h"
#include "tests/worker/backend/cuda/parity_libraries.h"
#include "tests/worker/backend/parity_backends.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace muster {
namespace {

constexpr int kFloat32Bits = 24;
constexpr int kTf32Bits = 11;
constexpr int kBf16Bits = 8;

// The libraries, with each call counted.
struct Counted {
  FailingCalls calls;
  absl::StatusOr<GpuFunctions> gpu = ParityLibraries();

  Counted() {
    if (gpu.ok()) gpu = calls.Wrap(*std::move(gpu));
  }
};

const Counted& Libraries() {
  static const Counted* const counted = new Counted;
  return *counted;
}

absl::StatusOr<const GpuFunctions*> Load(const std::string&) {
  const absl::StatusOr<GpuFunctions>& gpu = Libraries().gpu;
  if (!gpu.ok()) return gpu.status();
  return &*gpu;
}

ParityBackend With(const std::string& label, bool tf32, bool bf16) {
  BackendOptions options;
  options.gpu.tf32 = tf32;
  options.gpu.bf16 = bf16;
  return {label, [options] { return MakeCudaFactory(&Load).create(options); },
          bf16   ? kBf16Bits
          : tf32 ? kTf32Bits
                 : kFloat32Bits,
          [] { return Libraries().calls.calls_that_make(); }};
}

}  // namespace

std::vector<ParityBackend> ParityBackends() {
  return {With("tf32", true, false), With("float32", false, false),
          With("bf16", true, true)};
}

}  // namespace muster
