#ifndef TESTS_WORKER_BACKEND_PARITY_BACKENDS_H_
#define TESTS_WORKER_BACKEND_PARITY_BACKENDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/backend/backend.h"

namespace muster {

// A backend that is compared with the oracle.
struct ParityBackend {
  // In the names of tests: "cpu_threads2".
  std::string label;
  // Unavailable: its device is not there, and the test is skipped.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>()> make;
  // It rounds the factors of products to so many bits of mantissa: 8 of bf16.
  int factor_bits = 24;
  // How many calls to its device's libraries have made something so far:
  // memory, events, graphs, descriptors. Null: it has no such libraries.
  std::function<int64_t()> calls_that_make = nullptr;
};

// Those of this binary: each links a definition of its own.
std::vector<ParityBackend> ParityBackends();

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_PARITY_BACKENDS_H_
