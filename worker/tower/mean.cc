#include "worker/tower/mean.h"

#include <array>
#include <cassert>
#include <cstddef>

namespace muster {
namespace {

// Elements at a time: loops of a constant length become vector instructions
// everywhere. The loops are bound by memory: 16 (a cache line) are enough.
constexpr size_t kLanes = 16;
using Block = std::array<float, kLanes>;

// The last block of a span may be shorter: zeros stand for what it lacks.
Block Load(absl::Span<const float> values, size_t at) {
  Block block{};
  if (at + kLanes <= values.size()) {
    for (size_t i = 0; i < kLanes; ++i) block[i] = values[at + i];
  } else {
    for (size_t i = at; i < values.size(); ++i) block[i - at] = values[i];
  }
  return block;
}

void Store(const Block& block, absl::Span<float> values, size_t at) {
  if (at + kLanes <= values.size()) {
    for (size_t i = 0; i < kLanes; ++i) values[at + i] = block[i];
  } else {
    for (size_t i = at; i < values.size(); ++i) values[i] = block[i - at];
  }
}

void Add(const Block& block, Block* sum) {
  for (size_t i = 0; i < kLanes; ++i) (*sum)[i] += block[i];
}

void Scale(float scale, Block* block) {
  for (size_t i = 0; i < kLanes; ++i) (*block)[i] *= scale;
}

}  // namespace

void WriteMean(absl::Span<const absl::Span<const float>> srcs,
               absl::Span<float> dst) {
  const float scale = 1.0f / static_cast<float>(srcs.size());
  for (size_t at = 0; at < dst.size(); at += kLanes) {
    Block sum = Load(srcs[0], at);
    for (size_t s = 1; s < srcs.size(); ++s) {
      assert(srcs[s].size() == dst.size());
      Add(Load(srcs[s], at), &sum);
    }
    Scale(scale, &sum);
    Store(sum, dst, at);
  }
}

void AddAndScale(absl::Span<const float> src, float scale,
                 absl::Span<float> sum) {
  assert(src.size() == sum.size());
  for (size_t at = 0; at < sum.size(); at += kLanes) {
    Block block = Load(sum, at);
    Add(Load(src, at), &block);
    Scale(scale, &block);
    Store(block, sum, at);
  }
}

}  // namespace muster
