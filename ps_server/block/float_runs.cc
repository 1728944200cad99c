#include "ps_server/block/float_runs.h"

#include <algorithm>

#include "absl/base/config.h"
#include "absl/strings/string_view.h"
#include "common/base/cord_bytes.h"
#include "common/base/finite.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "The wire is little-endian and values are used where they lie."
#endif

namespace muster {
namespace {

// As EncodedValues want it.
bool IsAligned(const char* data, ValueFormat format) {
  return format != ValueFormat::kFloat32 ||
         reinterpret_cast<uintptr_t>(data) % alignof(float) == 0;
}

absl::Span<const float> Floats(const EncodedRun& run) {
  return absl::MakeConstSpan(reinterpret_cast<const float*>(run.values.data),
                             static_cast<size_t>(run.size));
}

}  // namespace

absl::Span<const float> FloatRuns::Next(int64_t max_elements) {
  if (codec_ == nullptr) return Floats(NextEncoded(max_elements));
  const EncodedRun run = NextEncoded(std::min(max_elements, kTileElements));
  codec_->Decode(run.values.data, run.size, decoded_.data());
  return absl::MakeConstSpan(decoded_.data(), static_cast<size_t>(run.size));
}

EncodedRun FloatRuns::NextEncoded(int64_t max_elements) {
  const ValueFormat format = FormatOf(codec_);
  const absl::string_view chunk = absl::Cord::ChunkRemaining(position_);
  int64_t direct =
      std::min<int64_t>(max_elements, static_cast<int64_t>(chunk.size()) /
                                          EncodedBytes(codec_, 1));
  if (direct < max_elements) direct -= direct % kRunMultiple;
  if (direct > 0 && IsAligned(chunk.data(), format)) {
    absl::Cord::Advance(&position_, EncodedBytes(codec_, direct));
    return {{format, chunk.data()}, direct};
  }
  const int64_t count = std::min(max_elements, kTileElements);
  CopyNext(&position_, static_cast<size_t>(EncodedBytes(codec_, count)),
           gathered_.data());
  return {{format, gathered_.data()}, count};
}

int64_t FindNonFinite(FloatRuns& runs, int64_t elements) {
  for (int64_t done = 0; done < elements;) {
    const EncodedRun run = runs.NextEncoded(elements - done);
    const int64_t bad =
        runs.codec() == nullptr
            ? FirstNonFinite(Floats(run))
            : runs.codec()->FirstNonFinite(run.values.data, run.size);
    if (bad >= 0) return done + bad;
    done += run.size;
  }
  return -1;
}

}  // namespace muster
