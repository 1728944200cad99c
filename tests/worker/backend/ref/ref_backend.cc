// Registers "ref" and "ref_float64".
#include <memory>
#include <type_traits>
#include <vector>

#include "tests/worker/backend/ref/ref_primitive.h"
#include "worker/backend/backend.h"
#include "worker/backend/virtual_devices.h"

namespace muster {
namespace {

// The oracle: every operation as plain loops in T. Every layout is row-major.
template <typename T>
class RefBackend : public Backend {
 public:
  absl::string_view name() const override {
    return std::is_same<T, double>::value ? "ref_float64" : "ref";
  }
  DataType dtype() const override { return DataTypeOf<T>::kValue; }

  Created Create(const Operation& operation, Pass pass,
                 absl::Span<const MemoryLayout> layouts) override {
    return RefPrimitives<T>::Create(*this, {}, operation, pass, layouts);
  }
};

// Never uses more than one thread, whatever `compute_threads` says: the order
// of its sums is part of the oracle.
template <typename T>
absl::StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions&) {
  return std::make_unique<RefBackend<T>>();
}

std::vector<Device> DevicesOf(absl::string_view backend) {
  return VirtualDevices(backend, "plain loops, one thread");
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register(
        "ref",
        {&Create<float>, [](const GpuOptions&) { return DevicesOf("ref"); }}) &&
    BackendRegistry::Register("ref_float64",
                              {&Create<double>, [](const GpuOptions&) {
                                 return DevicesOf("ref_float64");
                               }});

}  // namespace
}  // namespace muster
