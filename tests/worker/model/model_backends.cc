// Every backend without hardware of its own, for tests of whole models: those
// that compute in host memory, and fake devices of them.
#include <string>
#include <vector>

#include "tests/worker/backend/parity_backends.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr int kThreads = 2;

absl::StatusOr<std::unique_ptr<Backend>> MakeThreadedCpu() {
  BackendOptions options;
  options.compute_threads = kThreads;
  return CreateBackend("cpu", options);
}

}  // namespace

std::vector<ParityBackend> ParityBackends() {
  std::vector<ParityBackend> backends = {{"cpu_threads2", &MakeThreadedCpu}};
  for (const std::string name :
       {"ref_float64", "ref", "cpu", "device_of_ref", "device_of_cpu"}) {
    backends.push_back({name, [name] { return MakeBackend(name); }});
  }
  return backends;
}

}  // namespace muster
