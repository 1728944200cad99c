// Bytes read and written per second by each update rule, beside memcpy's in
// the same run; the ratio is what counts:
//   bazel run //tests/benchmark:optimizer_benchmark
// The block is one of a shard in cache (65,536 elements), a model of 3.3
// million parameters, or 16.8 million, whose tensors are several times any
// cache. There `over_bound` is the rule's time over that in which memcpy reads
// and writes as many bytes: the bound of a rule that waits for memory alone. A
// copy of one tensor follows each update, and the ratio is of the medians.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "common/base/finite.h"
#include "common/codec/codec.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/aligned_buffer.h"
#include "ps_server/block/float_runs.h"
#include "tests/benchmark/data_plane/rule_blocks.h"

namespace muster {
namespace {

constexpr int64_t kBlock = 65536;
constexpr int64_t kModel = 3276800;
constexpr int64_t kBeyondCaches = int64_t{1} << 24;

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

// This thread's: other processes do not count.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A rule with its memory.
class Updates {
 public:
  Updates(const UpdateRule& rule, int64_t n)
      : rule_(rule),
        n_(n),
        gradient_(Floats(n, 1e-3f)),
        parameter_(Floats(n, 0.5f)) {
    for (const SlotDef& slot : rule.slots()) {
      buffers_.push_back(Floats(n, slot.initial_value));
    }
    for (AlignedBuffer& buffer : buffers_) slots_.push_back(buffer.as<float>());
  }

  void Apply() {
    rule_.Apply({++t_}, gradient_.as<float>(), parameter_.as<float>(), slots_,
                n_);
    benchmark::ClobberMemory();
  }
  // The gradient is read; the parameter and the slots are read and written.
  int64_t bytes() const {
    return n_ * (4 + 8 + 8 * static_cast<int64_t>(slots_.size()));
  }

 private:
  const UpdateRule& rule_;
  const int64_t n_;
  const AlignedBuffer gradient_;
  AlignedBuffer parameter_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<float*> slots_;
  int64_t t_ = 0;
};

std::unique_ptr<UpdateRule> MakeRule(benchmark::State& state,
                                     const std::string& name) {
  OptimizerSpec spec;
  spec.set_name(name);
  auto rule = CreateUpdateRule(spec);
  if (rule.ok()) return *std::move(rule);
  state.SkipWithError(rule.status().ToString().c_str());
  return nullptr;
}

void BM_Apply(benchmark::State& state, const std::string& name) {
  const auto rule = MakeRule(state, name);
  if (rule == nullptr) return;
  Updates updates(*rule, state.range(0));
  for (auto _ : state) updates.Apply();
  state.SetBytesProcessed(state.iterations() * updates.bytes());
}

void BM_OverBound(benchmark::State& state, const std::string& name) {
  const auto rule = MakeRule(state, name);
  if (rule == nullptr) return;
  const int64_t n = state.range(0);
  Updates updates(*rule, n);
  const AlignedBuffer src = Floats(n, 1);
  AlignedBuffer dst = Floats(n, 0);
  std::vector<double> applied, copied;
  for (auto _ : state) {
    const double start = CpuSeconds();
    updates.Apply();
    const double end = CpuSeconds();
    std::memcpy(dst.data(), src.data(), src.size_bytes());
    benchmark::ClobberMemory();
    copied.push_back(CpuSeconds() - end);
    applied.push_back(end - start);
    state.SetIterationTime(end - start);
  }
  const double copies = static_cast<double>(updates.bytes()) /
                        static_cast<double>(2 * src.size_bytes());
  state.counters["over_bound"] = Median(applied) / (copies * Median(copied));
  state.SetBytesProcessed(state.iterations() * updates.bytes());
}

// One block after another, as a shard does.
double SecondsOfApply(RuleBlocks* blocks, const absl::Cord& gradient,
                      const Codec* codec) {
  FloatRuns runs(gradient, codec);
  const double start = CpuSeconds();
  blocks->Apply(&runs);
  benchmark::ClobberMemory();
  return CpuSeconds() - start;
}

void BM_FusedDecode(benchmark::State& state, const std::string& name) {
  const int64_t n = state.range(0);
  const auto codec = FindCodec(name);
  auto blocks = RuleBlocks::Create("adam", n);
  if (!codec.ok() || !blocks.ok()) {
    state.SkipWithError("no such codec or rule");
    return;
  }
  const AlignedBuffer values = Floats(n, 1e-3f);
  std::string encoded(static_cast<size_t>(EncodedBytes(*codec, n)), '\0');
  (*codec)->Encode(values.as<float>(), n, encoded.data());
  const auto leave = [](absl::string_view) {};
  const absl::Cord plain = absl::MakeCordFromExternal(
      absl::string_view(values.data(), values.size_bytes()), leave);
  const absl::Cord halves = absl::MakeCordFromExternal(encoded, leave);
  std::vector<double> decoded, copied;
  for (auto _ : state) {
    decoded.push_back(SecondsOfApply(blocks->get(), halves, *codec));
    copied.push_back(SecondsOfApply(blocks->get(), plain, nullptr));
    state.SetIterationTime(decoded.back());
  }
  state.counters["over_float32"] = Median(decoded) / Median(copied);
}

void BM_FirstNonFinite(benchmark::State& state) {
  const AlignedBuffer values = Floats(state.range(0), 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(FirstNonFinite(absl::MakeConstSpan(
        values.as<float>(), static_cast<size_t>(state.range(0)))));
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(values.size_bytes()));
}

BENCHMARK(BM_FirstNonFinite)->Arg(kBlock)->Arg(kModel);
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
    benchmark::RegisterBenchmark(
        ("BM_OverBound/" + name).c_str(),
        [name](benchmark::State& state) { muster::BM_OverBound(state, name); })
        ->Arg(muster::kBeyondCaches)
        ->UseManualTime();
  }
  for (const char* const name : {"bf16", "fp16"}) {
    benchmark::RegisterBenchmark(absl::StrCat("BM_FusedDecode/", name).c_str(),
                                 [name](benchmark::State& state) {
                                   muster::BM_FusedDecode(state, name);
                                 })
        ->Arg(muster::kModel)
        ->UseManualTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
