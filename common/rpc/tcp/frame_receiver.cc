#include "common/rpc/tcp/frame_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Data that nobody wants go through so much memory.
constexpr size_t kWasteBytes = size_t{64} * 1024;

}  // namespace

absl::Cord ReceivedFrame::data() const {
  if (buffer == nullptr) return absl::Cord();
  return absl::MakeCordFromExternal({buffer.get(), header.data_bytes},
                                    [held = buffer] {});
}

FrameReceiver::FrameReceiver(BufferPool* pool, ChoosePlace choose_place)
    : pool_(pool), choose_place_(std::move(choose_place)) {
  Begin(Section::kHeader, header_, sizeof(header_));
}

absl::StatusOr<std::optional<ReceivedFrame>> FrameReceiver::Next(
    ByteChannel* channel) {
  for (;;) {
    while (missing_ > 0) {
      ASSIGN_OR_RETURN(const size_t received, ReceiveSome(channel));
      if (received == 0) return std::nullopt;
      missing_ -= received;
      Advance(received);
    }
    ASSIGN_OR_RETURN(const bool is_whole, EndSection());
    if (!is_whole) continue;
    place_ = nullptr;
    Begin(Section::kHeader, header_, sizeof(header_));
    return std::exchange(frame_, {});
  }
}

absl::StatusOr<size_t> FrameReceiver::ReceiveSome(ByteChannel* channel) {
  if (place_ != nullptr) {
    absl::StatusOr<size_t> received;
    const bool is_wanted = place_->WriteIfWanted(
        [&] { received = channel->Receive(NextPieces()); });
    if (is_wanted) return received;
    Waste();
  }
  return channel->Receive(NextPieces());
}

absl::StatusOr<bool> FrameReceiver::EndSection() {
  switch (section_) {
    case Section::kHeader: {
      ASSIGN_OR_RETURN(frame_.header, DecodeFrameHeader(absl::string_view(
                                          header_, sizeof(header_))));
      frame_.fields.resize(frame_.header.fields_bytes);
      Begin(Section::kFields, frame_.fields.data(), frame_.fields.size());
      return false;
    }
    case Section::kFields:
      if (frame_.header.data_bytes == 0) return true;
      BeginData();
      return false;
    case Section::kData:
      return true;
  }
  return true;
}

void FrameReceiver::Begin(Section section, char* memory, size_t size_bytes) {
  section_ = section;
  missing_ = size_bytes;
  pieces_.assign(1, iovec{memory, size_bytes});
  piece_ = 0;
}

void FrameReceiver::BeginData() {
  const size_t size_bytes = frame_.header.data_bytes;
  if (choose_place_) place_ = choose_place_(frame_.header);
  if (place_ != nullptr) {
    const absl::Span<const absl::Span<char>> pieces =
        place_->PiecesFor(size_bytes);
    if (!pieces.empty()) {
      Begin(Section::kData, nullptr, size_bytes);
      pieces_.clear();
      for (const absl::Span<char> piece : pieces) {
        if (!piece.empty()) pieces_.push_back({piece.data(), piece.size()});
      }
      frame_.is_placed = true;
      return;
    }
    place_ = nullptr;
  }
  frame_.buffer = pool_->Take(size_bytes);
  Begin(Section::kData, frame_.buffer.get(), size_bytes);
}

absl::Span<const iovec> FrameReceiver::NextPieces() {
  if (!frame_.is_wasted) return absl::MakeConstSpan(pieces_).subspan(piece_);
  waste_pieces_.assign(1,
                       iovec{waste_.data(), std::min(missing_, waste_.size())});
  return waste_pieces_;
}

void FrameReceiver::Waste() {
  place_ = nullptr;
  frame_.is_wasted = true;
  waste_.resize(kWasteBytes);
}

void FrameReceiver::Advance(size_t bytes) {
  if (frame_.is_wasted) return;
  while (bytes > 0) {
    iovec& piece = pieces_[piece_];
    const size_t done = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<char*>(piece.iov_base) + done;
    piece.iov_len -= done;
    bytes -= done;
    if (piece.iov_len == 0) ++piece_;
  }
}

void FrameReceiver::Abandon(uint64_t call) {
  if (section_ == Section::kData && frame_.header.call == call) Waste();
}

}  // namespace muster
