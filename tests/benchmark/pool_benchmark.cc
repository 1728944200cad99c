// The fused ReLU + max pool 2x2 kernel beside oneDNN's pool and ReLU, on the
// two pools of mnist_cnn (batch 128), forward and backward, one thread.
//   bazel run //tests/benchmark:pool_benchmark
#include <memory>
#include <utility>

#include "benchmark/benchmark.h"
#include "common/tensor/aligned_buffer.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "worker/backend/backend.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_pool.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 128;
constexpr int64_t kBlock = 8;

PoolDesc Desc(const benchmark::State& state) {
  PoolDesc desc;
  desc.batch = kBatch;
  desc.channels = state.range(0);
  desc.height = desc.width = state.range(1);
  desc.window = {2, 2, 2, 2, 0, 0, 0, 0};
  return desc;
}

// A primitive with memory of its own, which holds small values of both signs.
class Owned {
 public:
  explicit Owned(std::unique_ptr<Primitive> primitive)
      : primitive_(std::move(primitive)) {
    for (int i = 0; i < kNumOperands; ++i) {
      const Operand operand = static_cast<Operand>(i);
      if (!primitive_->takes(operand)) continue;
      const MemoryLayout& layout = primitive_->layout(operand);
      buffers_[i] = AlignedBuffer(layout.size_bytes);
      if (layout.dtype == FLOAT32) Fill(&buffers_[i]);
      operands_.Set(operand, buffers_[i].data());
    }
  }
  bool Execute() { return primitive_->Execute(operands_).ok(); }
  void ReadWorkspaceOf(const Owned& other) {
    operands_.Set(Operand::kWorkspace,
                  other.operands_.Get(Operand::kWorkspace));
  }

 private:
  static void Fill(AlignedBuffer* buffer) {
    const uint32_t n = buffer->size_bytes() / sizeof(float);
    for (uint32_t i = 0; i < n; ++i) {
      const int noise = static_cast<int>(i * 2654435761u >> 20) % 200;
      buffer->as<float>()[i] = 0.01f * static_cast<float>(noise - 100);
    }
  }

  const std::unique_ptr<Primitive> primitive_;
  AlignedBuffer buffers_[kNumOperands];
  Operands operands_;
};

CpuContext Context() {
  return {dnnl::engine(dnnl::engine::kind::cpu, 0), /*threads=*/1};
}

void Fused(benchmark::State& state) {
  PoolDesc desc = Desc(state);
  desc.relu_before = true;
  const MemoryLayout src = ChannelBlockedLayout(desc.src_shape(), kBlock);
  const auto backend = *CreateBackend("cpu", {});
  Owned forward(*backend->Create(desc, Pass::kForward, {src}));
  Owned backward(*backend->Create(desc, Pass::kBackward, {src}));
  backward.ReadWorkspaceOf(forward);
  for (auto _ : state) {
    if (!forward.Execute() || !backward.Execute()) {
      state.SkipWithError("a primitive failed");
      break;
    }
  }
}

// ReLU forward is free there (fused in the convolution), its backward is not.
void OneDnn(benchmark::State& state) {
  const PoolDesc desc = Desc(state);
  const MemoryLayout src = ChannelBlockedLayout(desc.src_shape(), kBlock);
  const ActivationDesc relu = {ActivationKind::kRelu};
  Owned forward(*MakeDnnlPoolForward(Context(), desc, src));
  Owned backward(*MakeDnnlPoolBackward(Context(), desc, src));
  const auto backend = *CreateBackend("cpu", {});
  Owned relu_backward(*backend->Create(relu, Pass::kBackward, {src}));
  // Fills the workspace with what the backward pass may read.
  backward.ReadWorkspaceOf(forward);
  for (auto _ : state) {
    if (!forward.Execute() || !backward.Execute() || !relu_backward.Execute()) {
      state.SkipWithError("a primitive failed");
      break;
    }
  }
}

BENCHMARK(Fused)->Args({32, 28})->Args({64, 14})->Unit(benchmark::kMillisecond);
BENCHMARK(OneDnn)->Args({32, 28})->Args({64, 14})->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
