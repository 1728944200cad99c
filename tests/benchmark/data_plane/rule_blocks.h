#ifndef TESTS_BENCHMARK_DATA_PLANE_RULE_BLOCKS_H_
#define TESTS_BENCHMARK_DATA_PLANE_RULE_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/aligned_buffer.h"
#include "ps_server/block/float_runs.h"

namespace muster {

// A parameter with its slots and update rule, and nothing around them: what a
// shard does to each block, as its bare kernel. Not thread-safe.
class RuleBlocks {
 public:
  // Every element begins at kStart. Errors: as CreateUpdateRule's.
  static absl::StatusOr<std::unique_ptr<RuleBlocks>> Create(
      const std::string& optimizer, int64_t elements);

  static constexpr float kStart = 0.5f;

  // Applies a gradient of all elements, from memory or decoded on the way.
  void Apply(absl::Span<const float> gradient);
  void Apply(FloatRuns* gradient);
  // The loads and stores of an Apply without its arithmetic: each value goes to
  // the place of another one. No rule can be faster in this memory.
  void Move(absl::Span<const float> gradient);

  absl::Span<const float> parameter() const;

  // Read and written by an Apply, without the gradient.
  int64_t state_bytes() const;

  // Has every element moved, and is it finite? Errors: Internal.
  absl::Status Check() const;

 private:
  RuleBlocks(std::unique_ptr<UpdateRule> rule, int64_t elements);

  void ApplyRun(int64_t offset, const EncodedRun& run);

  const std::unique_ptr<UpdateRule> rule_;
  const int64_t elements_;
  int64_t t_ = 0;
  AlignedBuffer parameter_;
  std::vector<AlignedBuffer> slots_;
  // A run's slots; kept to allocate nothing.
  std::vector<float*> run_slots_;
};

// Are all values finite, and none of them `start` any more? Errors: Internal.
absl::Status CheckMoved(absl::Span<const float> values, float start);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_RULE_BLOCKS_H_
