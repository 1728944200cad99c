#ifndef WORKER_CLIENT_ENCODED_PARTS_H_
#define WORKER_CLIENT_ENCODED_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "worker/client/client_model.h"
#include "worker/client/tensor_view.h"

namespace muster {

// The parts of one push as a codec writes them. They are encoded once: a part
// that is sent again has the same bytes. Used again for the next push of the
// same model, it allocates nothing. One thread at a time.
class EncodedParts {
 public:
  // A run of values of one tensor in one part. Values are counted over all
  // parts, in their order.
  struct Run {
    int shard = 0;
    int part = 0;
    // Of a trainable tensor: the codec's error is fed back.
    bool trainable = true;
    int64_t begin = 0;
    int64_t length = 0;
  };

  // `codec` is not null and outlives this.
  explicit EncodedParts(const Codec* codec) : codec_(codec) {}

  const Codec& codec() const { return *codec_; }

  // Encodes the gradients, one float32 view a tensor of `model`. `feedback`,
  // unless null, has their residuals by value, and the same codec.
  void Encode(const ClientModel& model, absl::Span<const TensorView> gradients,
              ErrorFeedback* feedback = nullptr);

  // ---- Valid until the next Encode ----------------------------------------
  TensorView part(int shard, int part) const {
    const Extent& extent = parts_[shard][part];
    return {bytes_.data() + extent.offset, extent.size_bytes};
  }
  absl::Span<const Run> runs() const { return runs_; }
  const char* bytes_of(const Run& run) const {
    return bytes_.data() + EncodedBytes(codec_, run.begin);
  }

 private:
  struct Extent {
    int64_t offset = 0;
    int64_t size_bytes = 0;
  };

  const Codec* const codec_;
  std::vector<std::vector<Extent>> parts_;
  std::vector<Run> runs_;
  std::vector<char> bytes_;
};

// The values of all tensors together.
int64_t NumValues(absl::Span<const TensorView> gradients);

}  // namespace muster

#endif  // WORKER_CLIENT_ENCODED_PARTS_H_
