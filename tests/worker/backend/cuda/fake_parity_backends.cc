// The cuda backend on a fake card, for the parity tests.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/backend/cuda/fake_gpu.h"
#include "tests/worker/backend/parity_backends.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace muster {
namespace {

constexpr int kFloat32Bits = 24;
constexpr int kTf32Bits = 11;
constexpr int kBf16Bits = 8;

FakeGpu& Card() {
  static FakeGpu* const card = new FakeGpu();
  return *card;
}

ParityBackend With(const std::string& label, bool tf32, bool bf16) {
  BackendOptions options;
  options.gpu.tf32 = tf32;
  options.gpu.bf16 = bf16;
  return {label,
          [options] {
            return MakeCudaFactory(
                       [](const std::string&) { return &Card().functions(); })
                .create(options);
          },
          bf16   ? kBf16Bits
          : tf32 ? kTf32Bits
                 : kFloat32Bits};
}

}  // namespace

std::vector<ParityBackend> ParityBackends() {
  return {With("tf32", true, false), With("float32", false, false),
          With("bf16", true, true)};
}

}  // namespace muster
