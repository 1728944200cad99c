#include "ps_server/float_runs.h"

#include <algorithm>

#include "absl/base/config.h"
#include "absl/strings/string_view.h"
#include "common/base/finite.h"
#include "common/codec/encoded_values.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "The wire is little-endian and values are used where they lie."
#endif

namespace muster {
namespace {

bool IsFloatAligned(const char* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0;
}

}  // namespace

absl::Span<const float> FloatRuns::Next(int64_t max_elements) {
  const int64_t count = std::min(max_elements, kTileElements);
  if (codec_ != nullptr) return NextTile(count);
  const absl::string_view chunk = absl::Cord::ChunkRemaining(position_);
  int64_t direct =
      std::min<int64_t>(max_elements, chunk.size() / sizeof(float));
  if (direct < max_elements) direct -= direct % kRunMultiple;
  if (direct <= 0 || !IsFloatAligned(chunk.data())) return NextTile(count);
  absl::Cord::Advance(&position_, direct * sizeof(float));
  return absl::MakeConstSpan(reinterpret_cast<const float*>(chunk.data()),
                             direct);
}

absl::Span<const float> FloatRuns::NextTile(int64_t count) {
  DecodeNext(codec_, &position_, count, tile_.data());
  return absl::MakeConstSpan(tile_.data(), count);
}

int64_t FindNonFinite(FloatRuns& runs, int64_t elements) {
  for (int64_t done = 0; done < elements;) {
    const absl::Span<const float> run = runs.Next(elements - done);
    const int64_t bad = FirstNonFinite(run);
    if (bad >= 0) return done + bad;
    done += static_cast<int64_t>(run.size());
  }
  return -1;
}

}  // namespace muster
