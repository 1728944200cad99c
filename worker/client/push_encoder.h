#ifndef WORKER_CLIENT_PUSH_ENCODER_H_
#define WORKER_CLIENT_PUSH_ENCODER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "worker/client/client_model.h"
#include "worker/client/encoded_parts.h"

namespace muster {

// Encodes a client's pushes, and, with error feedback, knows what becomes of
// each: what was applied leaves what the codec lost of it as the residual; what
// was dropped becomes the residual whole, since nobody computes it again; what
// failed leaves the residual as it was, since its step is run again. Of state
// tensors nothing is fed back: what is owed of a batch with large values could
// take an average of small ones, such as a variance, below 0.
//
// Thread-safe. With error feedback one push is under way at a time: every Begin
// is followed by OnApplied, OnStored and Settle, OnDropped or OnFailed
// before the next.
class PushEncoder {
 public:
  // `codec` is not null and outlives this.
  PushEncoder(const Codec* codec, bool error_feedback);

  // The push of `step`. Its gradients, and the views of them, are read when
  // their part is asked for; its bytes stay what they are as long as it is
  // held.
  std::shared_ptr<EncodedParts> Begin(int64_t step, const ClientModel& model,
                                      absl::Span<const TensorView> gradients);
  // The bytes of one part of it, encoded now or before. One thread at a
  // time for each part.
  TensorView Part(EncodedParts* push, int shard, int part);

  // All parts of the push were asked for and are in the parameters.
  void OnApplied();
  // Every shard has it; Settle tells whether it is in an update.
  void OnStored();
  // It is in no update, and never will be.
  void OnDropped();
  // The push was given up; only the parts for which is_applied(shard, part) are
  // in the parameters.
  void OnFailed(const std::function<bool(int shard, int part)>& is_applied);

  // Ends what OnStored has begun; without one nothing. `chosen_step` is
  // StepToken's.
  void Settle(int64_t chosen_step);

  // The parameters are others (another model epoch): nothing is owed to them.
  void Clear();

 private:
  // The newest push's, as far as it is known.
  enum class Fate { kKnown, kUnderWay, kStored };

  // There is a push whose fate matters.
  bool IsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // REQUIRES: IsOpen().
  void Keep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Codec* const codec_;

  absl::Mutex mu_;
  // Null without error feedback.
  const std::unique_ptr<ErrorFeedback> feedback_ ABSL_PT_GUARDED_BY(mu_);
  // The newest push, and its step.
  std::shared_ptr<EncodedParts> encoded_ ABSL_GUARDED_BY(mu_);
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  Fate fate_ ABSL_GUARDED_BY(mu_) = Fate::kKnown;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PUSH_ENCODER_H_
