#ifndef COMMON_RPC_TCP_FRAME_RECEIVER_H_
#define COMMON_RPC_TCP_FRAME_RECEIVER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/tensor/buffer_pool.h"

namespace muster {

struct ReceivedFrame {
  FrameHeader header;
  std::string fields;
  // The memory in which its data lie, aligned; null if they were placed, or
  // there are none.
  std::shared_ptr<char> buffer;
  bool is_placed = false;
  // Its data were not wanted any more, and are gone; the rest is whole.
  bool is_wasted = false;

  // The bytes in `buffer`, which it shares.
  absl::Cord data() const;
};

// The receiving side of a TCP connection: makes frames of the bytes that come.
// Data go to where they are wanted, else to memory of a pool, which is got when
// the header was checked. Used by one thread.
class FrameReceiver {
 public:
  // The place that the answer with this header has; null for none. Not asked
  // for a frame without data.
  using ChoosePlace =
      std::function<std::shared_ptr<ValuePlace>(const FrameHeader&)>;

  // `choose_place`: null for none. `pool` outlives this.
  FrameReceiver(BufferPool* pool, ChoosePlace choose_place);

  FrameReceiver(const FrameReceiver&) = delete;
  FrameReceiver& operator=(const FrameReceiver&) = delete;

  // Receives what is there. A whole frame; nothing if more has to come. Errors:
  // the channel's; InvalidArgument for bytes that are no frame.
  absl::StatusOr<std::optional<ReceivedFrame>> Next(ByteChannel* channel);

  // If the answer to `call` has come in part, its data go nowhere.
  void Abandon(uint64_t call);

 private:
  enum class Section { kHeader, kFields, kData };

  // Bytes that came; 0 if none are there for now.
  absl::StatusOr<size_t> ReceiveSome(ByteChannel* channel);
  // The section is whole: begins the next one. True at the frame's end.
  absl::StatusOr<bool> EndSection();
  void Begin(Section section, char* memory, size_t size_bytes);
  void BeginData();
  // Where the next bytes go.
  absl::Span<const iovec> NextPieces();
  // Data go to memory that nobody reads from here on.
  void Waste();
  void Advance(size_t bytes);

  BufferPool* const pool_;
  const ChoosePlace choose_place_;

  Section section_ = Section::kHeader;
  char header_[kFrameHeaderBytes];
  ReceivedFrame frame_;
  std::shared_ptr<ValuePlace> place_;
  // The bytes that the section lacks yet, and where they go.
  size_t missing_ = 0;
  std::vector<iovec> pieces_;
  size_t piece_ = 0;
  std::vector<char> waste_;
  std::vector<iovec> waste_pieces_;
};

}  // namespace muster

#endif  // COMMON_RPC_TCP_FRAME_RECEIVER_H_
