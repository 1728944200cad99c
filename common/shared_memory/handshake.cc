#include "common/shared_memory/handshake.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/shared_memory/local_socket.h"
#include "common/shared_memory/slot_ring.h"

namespace muster {
namespace {

// Raised whenever the layout of the segment or of these packets changes.
constexpr uint32_t kLayoutVersion = 2;
constexpr char kMagic[8] = {'M', 'U', 'S', 'T', 'E', 'R', 'S', 'M'};
constexpr size_t kSecretBytes = 32;

// From the worker.
struct Greeting {
  char magic[8];
  uint32_t layout_version;
  uint32_t reserved;
  char token[kSecretBytes];
};

// From the ps, with the segment's descriptor.
struct Welcome {
  char magic[8];
  uint32_t layout_version;
  uint32_t num_slots;
  uint64_t slot_bytes;
  uint64_t segment_bytes;
};

template <typename T>
absl::string_view BytesOf(const T& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

// Reads a message of either kind, up to its version.
template <typename T>
absl::StatusOr<T> ParseMessage(absl::string_view bytes) {
  T message = {};
  if (bytes.size() != sizeof(message)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: a greeting of ", bytes.size(),
                     " bytes; wanted ", sizeof(message)));
  }
  std::memcpy(&message, bytes.data(), sizeof(message));
  if (std::memcmp(message.magic, kMagic, sizeof(kMagic)) != 0 ||
      message.layout_version != kLayoutVersion) {
    return absl::InvalidArgumentError(
        "shared memory: the peer's greeting is of another version; run the "
        "same build of ps_server and worker");
  }
  return message;
}

// In a time that does not tell how much of it is right.
bool IsSame(absl::string_view token, const char (&shown)[kSecretBytes]) {
  if (token.size() != kSecretBytes) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < kSecretBytes; ++i) {
    difference |= static_cast<unsigned char>(token[i] ^ shown[i]);
  }
  return difference == 0;
}

}  // namespace

std::string NewSecret() {
  std::random_device random;
  std::string secret;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&secret, absl::Hex(random(), absl::kZeroPad8));
  }
  return secret;
}

absl::StatusOr<SharedPeer> JoinSegment(absl::string_view socket_name,
                                       absl::string_view token) {
  Greeting greeting = {};
  if (token.size() != kSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: the ps offers a token of ", token.size(),
                     " bytes; wanted ", kSecretBytes));
  }
  ASSIGN_OR_RETURN(FileDescriptor socket, ConnectLocal(socket_name));
  RETURN_IF_ERROR(CheckPeerUser(socket));
  std::memcpy(greeting.magic, kMagic, sizeof(kMagic));
  greeting.layout_version = kLayoutVersion;
  std::memcpy(greeting.token, token.data(), kSecretBytes);
  RETURN_IF_ERROR(SendPacket(socket, BytesOf(greeting)));
  ASSIGN_OR_RETURN(Packet packet,
                   ReceivePacket(socket, sizeof(Welcome), kHandshakeTimeout));
  ASSIGN_OR_RETURN(const Welcome welcome, ParseMessage<Welcome>(packet.bytes));
  if (welcome.num_slots != kNumSlots || welcome.slot_bytes != kSlotBytes ||
      welcome.segment_bytes != kSegmentBytes || !packet.fd.valid()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shared memory: the ps offers ", welcome.num_slots, " slots of ",
        welcome.slot_bytes, " bytes in ", welcome.segment_bytes, "; wanted ",
        kNumSlots, " of ", kSlotBytes, " in ", kSegmentBytes));
  }
  ASSIGN_OR_RETURN(MemorySegment segment,
                   MemorySegment::Adopt(std::move(packet.fd), kSegmentBytes));
  return SharedPeer{std::move(socket), std::move(segment)};
}

absl::StatusOr<MemorySegment> OfferSegment(const FileDescriptor& socket,
                                           absl::string_view token) {
  RETURN_IF_ERROR(CheckPeerUser(socket));
  ASSIGN_OR_RETURN(const Packet packet,
                   ReceivePacket(socket, sizeof(Greeting), kHandshakeTimeout));
  ASSIGN_OR_RETURN(const Greeting greeting,
                   ParseMessage<Greeting>(packet.bytes));
  if (!IsSame(token, greeting.token)) {
    return absl::PermissionDeniedError(
        "shared memory: the peer shows another token than was offered");
  }
  ASSIGN_OR_RETURN(MemorySegment segment, MemorySegment::Create(kSegmentBytes));
  Welcome welcome = {};
  std::memcpy(welcome.magic, kMagic, sizeof(kMagic));
  welcome.layout_version = kLayoutVersion;
  welcome.num_slots = kNumSlots;
  welcome.slot_bytes = kSlotBytes;
  welcome.segment_bytes = kSegmentBytes;
  RETURN_IF_ERROR(SendPacket(socket, BytesOf(welcome), segment.fd()));
  return segment;
}

}  // namespace muster
