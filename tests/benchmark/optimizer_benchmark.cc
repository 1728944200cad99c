// Bytes read and written per second by each update rule, beside memcpy's in
// the same run; the ratio is what counts:
//   bazel run //tests/benchmark:optimizer_benchmark
// The block is one of a shard in cache (65,536 elements), or a model of 3.3
// million parameters in memory.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/aligned_buffer.h"

namespace muster {
namespace {

constexpr int64_t kBlock = 65536;
constexpr int64_t kModel = 3276800;

AlignedBuffer Floats(int64_t n, float value) {
  AlignedBuffer buffer(static_cast<size_t>(n) * sizeof(float));
  for (int64_t i = 0; i < n; ++i) buffer.as<float>()[i] = value;
  return buffer;
}

void BM_Memcpy(benchmark::State& state) {
  const int64_t n = state.range(0);
  const AlignedBuffer src = Floats(n, 1);
  AlignedBuffer dst = Floats(n, 0);
  for (auto _ : state) {
    std::memcpy(dst.data(), src.data(), src.size_bytes());
    benchmark::DoNotOptimize(dst.data());
    benchmark::ClobberMemory();
  }
  // Read and written.
  state.SetBytesProcessed(state.iterations() * n * 8);
}

void BM_Apply(benchmark::State& state, const std::string& name) {
  const int64_t n = state.range(0);
  OptimizerSpec spec;
  spec.set_name(name);
  const auto rule = CreateUpdateRule(spec);
  if (!rule.ok()) {
    state.SkipWithError(rule.status().ToString().c_str());
    return;
  }
  const AlignedBuffer gradient = Floats(n, 1e-3f);
  AlignedBuffer parameter = Floats(n, 0.5f);
  std::vector<AlignedBuffer> buffers;
  std::vector<float*> slots;
  for (const SlotDef& slot : (*rule)->slots()) {
    buffers.push_back(Floats(n, slot.initial_value));
  }
  for (AlignedBuffer& buffer : buffers) slots.push_back(buffer.as<float>());
  int64_t t = 0;
  for (auto _ : state) {
    (*rule)->Apply({++t}, gradient.as<float>(), parameter.as<float>(), slots,
                   n);
    benchmark::ClobberMemory();
  }
  // The gradient is read; the parameter and the slots are read and written.
  const int64_t bytes = 4 + 8 + 8 * static_cast<int64_t>(slots.size());
  state.SetBytesProcessed(state.iterations() * n * bytes);
}

BENCHMARK(BM_Memcpy)->Arg(kBlock)->Arg(kModel);

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const std::string& name : muster::UpdateRuleNames()) {
    benchmark::RegisterBenchmark(
        ("BM_Apply/" + name).c_str(),
        [name](benchmark::State& state) { muster::BM_Apply(state, name); })
        ->Arg(muster::kBlock)
        ->Arg(muster::kModel);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
