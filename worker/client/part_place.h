#ifndef WORKER_CLIENT_PART_PLACE_H_
#define WORKER_CLIENT_PART_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/rpc/parameter_link.h"
#include "worker/client/client_model.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_plan.h"

namespace muster {

// The caller's memory for the values of one attempt of one part, which a link
// receives into: the slices' places, in order. Thread-safe; shared by the link
// and the attempt's callback.
//
// Two rules keep that memory right:
// - Each write holds the transfer: nothing is written after its end, which
//   waits for a write under way.
// - The attempt's `done` calls Close before anything else, which waits for a
//   write under way, too. The window sends a part again only when the attempt
//   before was answered, so one attempt at a time can write. A connection that
//   breaks in mid-answer leaves half of the values, and the next attempt
//   writes all of them again; an answer that was accepted is the part's last.
class PartPlace : public ValuePlace {
 public:
  // Smaller slices on average cost less through one buffer of the link.
  static constexpr int64_t kLeastSliceBytes = 4096;

  // `into`: one view a tensor. With a `codec` (null: float32 as they are) or
  // small slices nothing goes here.
  PartPlace(Transfer* transfer, const PlannedPart& part, const Codec* codec,
            absl::Span<const MutableTensorView> into);

  absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) override;
  // `write` must not close this. After it the transfer may end, which calls
  // back: the caller holds no lock.
  bool WriteIfWanted(absl::FunctionRef<void()> write) override;

  // The attempt is over: no write is under way, and none will come.
  void Close();

 private:
  // Constant after construction.
  const std::shared_ptr<Transfer> transfer_;
  size_t size_bytes_ = 0;
  std::vector<absl::Span<char>> pieces_;

  // Held while `write` runs, before the transfer's own.
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PART_PLACE_H_
