#include "common/rpc/tcp/frame_sender.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

void FrameSender::Add(FrameHeader header, absl::string_view fields,
                      absl::Cord data) {
  header.fields_bytes = static_cast<uint32_t>(fields.size());
  header.data_bytes = data.size();
  Outgoing frame;
  frame.call = header.call;
  frame.head = absl::StrCat(EncodeFrameHeader(header), fields);
  frame.data = std::move(data);
  absl::MutexLock lock(&mu_);
  frames_.push_back(std::move(frame));
}

absl::StatusOr<FrameSender::Progress> FrameSender::Pump(ByteChannel* channel) {
  {
    absl::MutexLock lock(&mu_);
    if (is_pumping_) return Progress::kDone;
    is_pumping_ = true;
  }
  for (;;) {
    const absl::StatusOr<Progress> progress = SendFrames(channel);
    const bool is_done = progress.ok() && *progress == Progress::kDone;
    if (StopPumping(/*to_the_end=*/is_done)) return progress;
  }
}

absl::StatusOr<FrameSender::Progress> FrameSender::SendFrames(
    ByteChannel* channel) {
  while (Outgoing* const frame = Front()) {
    ASSIGN_OR_RETURN(const bool sent, SendAll(channel, frame));
    if (!sent) return Progress::kSocketFull;
    // It goes outside the lock: who lent the data is told.
    Outgoing done;
    absl::MutexLock lock(&mu_);
    std::swap(done, frames_.front());
    frames_.pop_front();
  }
  ASSIGN_OR_RETURN(const bool flushed, channel->Flush());
  return flushed ? Progress::kDone : Progress::kSocketFull;
}

FrameSender::Outgoing* FrameSender::Front() {
  absl::MutexLock lock(&mu_);
  return frames_.empty() ? nullptr : &frames_.front();
}

bool FrameSender::StopPumping(bool to_the_end) {
  absl::MutexLock lock(&mu_);
  if (to_the_end && !frames_.empty()) return false;
  is_pumping_ = false;
  return true;
}

absl::StatusOr<bool> FrameSender::SendAll(ByteChannel* channel,
                                          Outgoing* frame) {
  if (frame->pieces.empty()) Cut(frame);
  while (frame->piece < frame->pieces.size()) {
    ASSIGN_OR_RETURN(
        const size_t sent,
        channel->Send(
            absl::MakeConstSpan(frame->pieces).subspan(frame->piece)));
    if (sent == 0) return false;
    sent_bytes_ += sent;
    Advance(sent, frame);
  }
  return true;
}

void FrameSender::Cut(Outgoing* frame) {
  frame->pieces.push_back({frame->head.data(), frame->head.size()});
  for (const absl::string_view chunk : frame->data.Chunks()) {
    // The system only reads it.
    frame->pieces.push_back({const_cast<char*>(chunk.data()), chunk.size()});
  }
}

void FrameSender::Advance(size_t bytes, Outgoing* frame) {
  while (bytes > 0) {
    iovec& piece = frame->pieces[frame->piece];
    const size_t done = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<char*>(piece.iov_base) + done;
    piece.iov_len -= done;
    bytes -= done;
    if (piece.iov_len == 0) ++frame->piece;
  }
}

bool FrameSender::empty() const {
  absl::MutexLock lock(&mu_);
  return frames_.empty();
}

void FrameSender::Drop(uint64_t call) {
  // They go outside the lock: who lent their data is told.
  std::list<Outgoing> dropped;
  absl::MutexLock lock(&mu_);
  if (frames_.empty()) return;
  for (auto it = std::next(frames_.begin()); it != frames_.end();) {
    const auto frame = it++;
    if (frame->call != call) continue;
    dropped.splice(dropped.end(), frames_, frame);
  }
}

bool FrameSender::Holds(uint64_t call) const {
  absl::MutexLock lock(&mu_);
  return std::any_of(
      frames_.begin(), frames_.end(),
      [call](const Outgoing& frame) { return frame.call == call; });
}

}  // namespace muster
