#ifndef WORKER_CLIENT_ENCODED_PARTS_H_
#define WORKER_CLIENT_ENCODED_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "worker/client/client_model.h"

namespace muster {

// The parts of one push as a codec writes them, each encoded when it is first
// asked for, and once: a part that is sent again has the same bytes. Used again
// for the next push of the same model, it allocates nothing. One thread at a
// time, but that several may ask for different parts if nothing is fed back.
class EncodedParts {
 public:
  // A run of values of one tensor in one part. Values are counted over all
  // parts, in their order.
  struct Run {
    int shard = 0;
    int part = 0;
    // Whether the tensor is: then the codec's error is fed back.
    bool trainable = true;
    int64_t begin = 0;
    int64_t length = 0;
    // Where it is of a gradient.
    int tensor = 0;
    int64_t offset = 0;
  };

  // `codec` is not null and outlives this.
  explicit EncodedParts(const Codec* codec) : codec_(codec) {}

  const Codec& codec() const { return *codec_; }

  // A push of these gradients, one float32 view a tensor of `model`. Views and
  // gradients are read when their part is asked for.
  void Begin(const ClientModel& model, absl::Span<const TensorView> gradients);

  // ---- Valid until the next Begin -----------------------------------------

  // The bytes of a part. `feedback`, unless null, has the residuals of all
  // values, and the same codec; it is used if the part is encoded now.
  TensorView Part(int shard, int part, ErrorFeedback* feedback = nullptr);
  absl::Span<const Run> runs() const { return runs_; }
  // REQUIRES: its part was asked for.
  const char* bytes_of(const Run& run) const {
    return bytes_.data() + EncodedBytes(codec_, run.begin);
  }

 private:
  // Where a part's values are among all of them, and its runs among all runs.
  struct Extent {
    int64_t begin = 0;
    int64_t length = 0;
    size_t first_run = 0;
    size_t runs = 0;
    bool is_encoded = false;
  };

  void EncodeRun(size_t index, ErrorFeedback* feedback);

  const Codec* const codec_;
  absl::Span<const TensorView> gradients_;
  std::vector<std::vector<Extent>> parts_;
  std::vector<Run> runs_;
  std::vector<char> bytes_;
};

// The values of all tensors together.
int64_t NumValues(absl::Span<const TensorView> gradients);

}  // namespace muster

#endif  // WORKER_CLIENT_ENCODED_PARTS_H_
