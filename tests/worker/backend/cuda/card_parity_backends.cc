// The cuda backend on the first real card, for the parity tests.
#include <string>
#include <vector>

#include "tests/worker/backend/backend_parity.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

// bf16 keeps 8 bits of a factor: an error of 2^-9 of it.
constexpr double kBf16Epsilon = 1.0 / 512;

ParityBackend With(const std::string& label, bool tf32, bool bf16) {
  BackendOptions options;
  options.gpu.tf32 = tf32;
  options.gpu.bf16 = bf16;
  return {label, [options] { return CreateBackend("cuda", options); },
          bf16 ? kBf16Epsilon : 0};
}

}  // namespace

// The values of these tests have 11 bits: TF32 holds them exactly.
std::vector<ParityBackend> ParityBackends() {
  return {With("tf32", true, false), With("float32", false, false),
          With("bf16", true, true)};
}

}  // namespace muster
