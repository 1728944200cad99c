// The backends that compute in host memory, for the parity tests.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/worker/backend/parity_backends.h"

namespace muster {
namespace {

ParityBackend WithThreads(const std::string& name, int threads) {
  BackendOptions options;
  options.compute_threads = threads;
  return {absl::StrCat(name, "_threads", threads),
          [name, options] { return CreateBackend(name, options); }};
}

}  // namespace

std::vector<ParityBackend> ParityBackends() {
  return {WithThreads("ref", 1), WithThreads("cpu", 1), WithThreads("cpu", 2)};
}

}  // namespace muster
