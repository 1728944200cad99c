#include "tests/benchmark/data_plane/memory_copy.h"

#include <cstring>

#include "common/tensor/aligned_buffer.h"

namespace muster {
namespace {

class MemoryCopy : public Workload {
 public:
  explicit MemoryCopy(int64_t bytes) : src_(bytes), dst_(bytes) {
    std::memset(src_.data(), 1, src_.size_bytes());
  }

  absl::Status Step(int) override {
    std::memcpy(dst_.data(), src_.data(), src_.size_bytes());
    // So that no step is left out: the compiler must think that dst is read.
    asm volatile("" : : "r"(dst_.data()) : "memory");
    return absl::OkStatus();
  }

  absl::Status Check() override {
    if (std::memcmp(src_.data(), dst_.data(), src_.size_bytes()) == 0) {
      return absl::OkStatus();
    }
    return absl::InternalError("memcpy: the copy differs");
  }

  // Read and written.
  int64_t bytes_per_step() const override {
    return 2 * static_cast<int64_t>(src_.size_bytes());
  }

 private:
  AlignedBuffer src_;
  AlignedBuffer dst_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeMemoryCopy(
    const WorkloadOptions& options) {
  return std::make_unique<MemoryCopy>(options.bytes);
}

}  // namespace muster
