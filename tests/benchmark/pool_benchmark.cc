// The fused ReLU + max pool 2x2 kernel beside oneDNN's pool and ReLU, on the
// two pools of mnist_cnn (batch 128), forward and backward, one thread.
//   bazel run //tests/benchmark:pool_benchmark
#include <memory>

#include "benchmark/benchmark.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/benchmark/owned_primitive.h"
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

CpuContext Context() {
  return {dnnl::engine(dnnl::engine::kind::cpu, 0), /*threads=*/1};
}

void Fused(benchmark::State& state) {
  PoolDesc desc = Desc(state);
  desc.relu_before = true;
  const MemoryLayout src = ChannelBlockedLayout(desc.src_shape(), kBlock);
  const auto backend = *CreateBackend("cpu", {});
  OwnedPrimitive forward(*backend->Create(desc, Pass::kForward, {src}));
  OwnedPrimitive backward(*backend->Create(desc, Pass::kBackward, {src}));
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
  OwnedPrimitive forward(*MakeDnnlPoolForward(Context(), desc, src));
  OwnedPrimitive backward(*MakeDnnlPoolBackward(Context(), desc, src));
  const auto backend = *CreateBackend("cpu", {});
  OwnedPrimitive relu_backward(*backend->Create(relu, Pass::kBackward, {src}));
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
