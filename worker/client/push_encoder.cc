#include "worker/client/push_encoder.h"

namespace muster {

PushEncoder::PushEncoder(const Codec* codec, bool error_feedback)
    : codec_(codec),
      feedback_(error_feedback ? std::make_unique<ErrorFeedback>(codec)
                               : nullptr) {}

std::shared_ptr<EncodedParts> PushEncoder::Begin(
    int64_t step, const ClientModel& model,
    absl::Span<const TensorView> gradients) {
  absl::MutexLock lock(&mu_);
  // The memory of an earlier push, if it is over.
  if (encoded_ == nullptr || encoded_.use_count() > 1) {
    encoded_ = std::make_shared<EncodedParts>(codec_);
  }
  const int64_t values = NumValues(gradients);
  if (feedback_ != nullptr && feedback_->values() != values) {
    feedback_->Clear(values);
  }
  encoded_->Begin(model, gradients);
  step_ = step;
  fate_ = Fate::kUnderWay;
  return encoded_;
}

TensorView PushEncoder::Part(EncodedParts* push, int shard, int part) {
  if (feedback_ == nullptr) return push->Part(shard, part);
  absl::MutexLock lock(&mu_);
  // Whom nothing is owed any more gets the gradient alone.
  const bool is_owed = push == encoded_.get() && fate_ == Fate::kUnderWay;
  return push->Part(shard, part, is_owed ? feedback_.get() : nullptr);
}

bool PushEncoder::IsOpen() const {
  return feedback_ != nullptr && fate_ != Fate::kKnown;
}

void PushEncoder::OnApplied() {
  absl::MutexLock lock(&mu_);
  if (IsOpen()) Keep();
}

void PushEncoder::OnStored() {
  absl::MutexLock lock(&mu_);
  if (IsOpen()) fate_ = Fate::kStored;
}

void PushEncoder::OnDropped() {
  absl::MutexLock lock(&mu_);
  if (IsOpen()) TakeBack();
}

void PushEncoder::OnFailed(
    const std::function<bool(int shard, int part)>& is_applied) {
  absl::MutexLock lock(&mu_);
  if (!IsOpen()) return;
  for (const EncodedParts::Run& run : encoded_->runs()) {
    if (run.trainable && is_applied(run.shard, run.part)) {
      feedback_->Keep(run.begin, run.length);
    }
  }
  fate_ = Fate::kKnown;
}

void PushEncoder::Settle(int64_t chosen_step) {
  absl::MutexLock lock(&mu_);
  if (!IsOpen() || fate_ != Fate::kStored) return;
  if (chosen_step < step_) {
    TakeBack();
  } else {
    Keep();
  }
}

void PushEncoder::Clear() {
  absl::MutexLock lock(&mu_);
  fate_ = Fate::kKnown;
  if (feedback_ != nullptr) feedback_->Clear(feedback_->values());
}

void PushEncoder::Keep() {
  feedback_->Keep(0, feedback_->values());
  fate_ = Fate::kKnown;
}

void PushEncoder::TakeBack() {
  for (const EncodedParts::Run& run : encoded_->runs()) {
    if (!run.trainable) continue;
    feedback_->TakeBack(run.begin, run.length, encoded_->bytes_of(run));
  }
  fate_ = Fate::kKnown;
}

}  // namespace muster
