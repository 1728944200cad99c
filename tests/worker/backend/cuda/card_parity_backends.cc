// The cuda backend on the first real card, for the parity tests.
#include <string>
#include <vector>

#include "tests/worker/backend/parity_backends.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

constexpr int kFloat32Bits = 24;
constexpr int kTf32Bits = 11;
constexpr int kBf16Bits = 8;

ParityBackend With(const std::string& label, bool tf32, bool bf16) {
  BackendOptions options;
  options.gpu.tf32 = tf32;
  options.gpu.bf16 = bf16;
  return {label, [options] { return CreateBackend("cuda", options); },
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
