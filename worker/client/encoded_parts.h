#ifndef WORKER_CLIENT_ENCODED_PARTS_H_
#define WORKER_CLIENT_ENCODED_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "worker/client/client_model.h"
#include "worker/client/tensor_view.h"

namespace muster {

// The parts of one push as a codec writes them. They are encoded once: a part
// that is sent again has the same bytes. Used again for the next push of the
// same model, it allocates nothing. One thread at a time.
class EncodedParts {
 public:
  // `codec` is not null and outlives this.
  explicit EncodedParts(const Codec* codec) : codec_(codec) {}

  const Codec& codec() const { return *codec_; }

  // Encodes the gradients, one float32 view a tensor of `model`.
  void Encode(const ClientModel& model, absl::Span<const TensorView> gradients);

  // Valid until the next Encode.
  TensorView part(int shard, int part) const {
    const Extent& extent = parts_[shard][part];
    return {bytes_.data() + extent.offset, extent.size_bytes};
  }

 private:
  struct Extent {
    int64_t offset = 0;
    int64_t size_bytes = 0;
  };

  const Codec* const codec_;
  std::vector<std::vector<Extent>> parts_;
  std::vector<char> bytes_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_ENCODED_PARTS_H_
