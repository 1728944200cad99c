// Frames of a TCP connection. The input: how it comes in pieces, what becomes
// of places, whether checksums are mended (they are not guessed), then the
// connection's bytes. A plain reader of them has to find the same frames.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/internal/endian.h"
#include "common/base/crc32c.h"
#include "common/rpc/protocol.h"
#include "common/rpc/tcp/frame_receiver.h"
#include "tests/common/rpc/tcp/memory_channel.h"
#include "tests/fuzz/fuzz.h"

namespace muster {
namespace {

constexpr size_t kCrc = 28;

struct PlainFrame {
  FrameHeader header;
  std::string fields;
  std::string data;
};

uint32_t SumOf(absl::string_view header) {
  return Crc32c(header.substr(0, kCrc));
}

// The frames that begin `bytes`, whole ones alone; `is_sound`: no header is
// refused. With `mends` headers get the right sum first.
std::vector<PlainFrame> ReadPlainly(std::string* bytes, bool mends,
                                    bool* is_sound) {
  std::vector<PlainFrame> frames;
  *is_sound = true;
  for (size_t at = 0; bytes->size() - at >= kFrameHeaderBytes;) {
    char* const head = &(*bytes)[at];
    const uint32_t sum = SumOf({head, kFrameHeaderBytes});
    if (mends) absl::little_endian::Store32(head + kCrc, sum);
    FrameHeader header;
    header.call = absl::little_endian::Load64(head);
    header.kind = absl::little_endian::Load32(head + 8);
    header.fields_bytes = absl::little_endian::Load32(head + 12);
    header.data_bytes = absl::little_endian::Load64(head + 16);
    header.timeout_ms = absl::little_endian::Load32(head + 24);
    *is_sound = absl::little_endian::Load32(head + kCrc) == sum &&
                header.fields_bytes <= kMaxHeaderBytes &&
                header.data_bytes <= uint64_t{kMaxPartBytes};
    if (!*is_sound) break;
    at += kFrameHeaderBytes;
    const size_t size = header.fields_bytes + header.data_bytes;
    if (bytes->size() - at < size) break;
    frames.push_back(
        {header, bytes->substr(at, header.fields_bytes),
         bytes->substr(at + header.fields_bytes, header.data_bytes)});
    at += size;
  }
  return frames;
}

// Memory in two pieces, which is wanted for so many writes.
class FuzzedPlace : public ValuePlace {
 public:
  FuzzedPlace(size_t size, int wanted) : wanted_(wanted), memory_(size, '\0') {
    const absl::Span<char> all = absl::MakeSpan(memory_);
    pieces_ = {all.subspan(0, size / 3), all.subspan(size / 3)};
  }
  absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) override {
    Want(size_bytes == memory_.size(), "the frame's size");
    if (wanted_ % 4 == 3) return {};
    return pieces_;
  }
  bool WriteIfWanted(absl::FunctionRef<void()> write) override {
    if (wanted_ == 0) return false;
    --wanted_;
    write();
    return true;
  }
  const std::string& bytes() const { return memory_; }

 private:
  int wanted_;
  std::string memory_;
  std::vector<absl::Span<char>> pieces_;
};

}  // namespace

void TryInput(absl::string_view input) {
  const uint8_t seed = TakeByte(&input);
  const uint8_t places = TakeByte(&input);
  const bool mends = TakeByte(&input) % 4 != 0;
  std::string bytes(input);
  bool is_sound = false;
  const auto wanted = ReadPlainly(&bytes, mends, &is_sound);

  uint32_t random = seed;
  const auto next_random = [&random] {
    return (random = random * 1664525 + 1013904223) >> 24;
  };
  MemoryChannel channel(bytes, [&] { return next_random() % (seed + 2); });
  channel.Close();
  std::shared_ptr<FuzzedPlace> place;
  BufferPool pool;
  FrameReceiver receiver(&pool, [&](const FrameHeader& header) {
    place = places % 2 == 0
                ? nullptr
                : std::make_shared<FuzzedPlace>(header.data_bytes, places / 2);
    return place;
  });
  size_t found = 0;
  for (;;) {
    auto next = receiver.Next(&channel);
    if (!next.ok()) {
      Want(found == wanted.size(), "every whole frame");
      Want(absl::IsUnavailable(next.status()) == is_sound, "the right error");
      return;
    }
    if (!next->has_value()) {
      if (places >= 128) receiver.Abandon(next_random() % 4);
      continue;
    }
    const ReceivedFrame& frame = **next;
    Want(found < wanted.size(), "no frame that was not sent");
    const PlainFrame& plain = wanted[found++];
    Want(frame.header.call == plain.header.call &&
             frame.header.kind == plain.header.kind &&
             frame.header.timeout_ms == plain.header.timeout_ms,
         "the header");
    Want(frame.fields == plain.fields, "the fields");
    Want(!(frame.is_placed && frame.is_wasted), "one place for data");
    if (frame.is_wasted) {
      Want(frame.data().empty(), "no data");
    } else {
      Want(frame.is_placed ? place->bytes() == plain.data
                           : frame.data() == plain.data,
           "the data");
    }
  }
}

}  // namespace muster
