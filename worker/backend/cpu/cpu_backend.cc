// Registers "cpu".
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/backend/backend.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_status.h"
#include "worker/backend/virtual_devices.h"

namespace muster {
namespace {

// oneDNN with kernels of our own. float32.
class CpuBackend : public Backend {
 public:
  explicit CpuBackend(CpuContext context) : context_(std::move(context)) {}

  absl::string_view name() const override { return "cpu"; }
  DataType dtype() const override { return FLOAT32; }

  // Calls oneDNN with our number of threads: some of its primitives divide
  // their work when they are made.
  Created Create(const Operation& operation, Pass pass,
                 absl::Span<const MemoryLayout> layouts) override {
    UseComputeThreads(context_.threads);
    return CatchDnnl(absl::StrCat("create ", PrimitiveName(operation, pass)),
                     [&] {
                       return CpuPrimitives::Create(*this, context_, operation,
                                                    pass, layouts);
                     });
  }

  std::optional<MemoryLayout> Stacked(const MemoryLayout& layout,
                                      int64_t count) const override {
    return muster::Stacked(layout, count);
  }

 private:
  const CpuContext context_;
};

absl::StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions& options) {
  using Result = absl::StatusOr<std::unique_ptr<Backend>>;
  return CatchDnnl("create backend 'cpu'", [&]() -> Result {
    return std::make_unique<CpuBackend>(
        CpuContext{dnnl::engine(dnnl::engine::kind::cpu, /*index=*/0),
                   options.compute_threads});
  });
}

absl::string_view InstructionSet() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 VNNI";
    default:
      return "AVX-512";
  }
}

std::vector<Device> Devices(const GpuOptions& /*gpu*/) {
  const dnnl::version_t* version = dnnl::version();
  return VirtualDevices(
      "cpu", absl::StrCat("oneDNN ", version->major, ".", version->minor, ".",
                          version->patch, ", ", InstructionSet(), ", ",
                          std::thread::hardware_concurrency(), " cores"));
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register("cpu", {&Create, &Devices});

}  // namespace
}  // namespace muster
