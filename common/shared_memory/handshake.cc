#include "common/shared_memory/handshake.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/local_socket.h"
#include "common/shared_memory/slot_ring.h"

namespace muster {
namespace {

// Raised whenever the layout of the segment or of these packets changes.
constexpr uint32_t kLayoutVersion = 3;
constexpr char kMagic[8] = {'M', 'U', 'S', 'T', 'E', 'R', 'S', 'M'};
constexpr size_t kSecretBytes = 32;
// The size of an error that a Welcome without a segment brings.
constexpr size_t kMaxRefusalBytes = 8192;

enum Wanted : uint32_t { kSegment = 0, kParameters = 1 };

// The worker's packet.
struct Greeting {
  char magic[8];
  uint32_t layout_version;
  uint32_t wanted;
  char token[kSecretBytes];
  // The epoch of the parameters.
  int64_t model_epoch;
};

// The ps's packet, with the descriptor. One of 0 bytes is none, and what
// follows is a StatusDetails that says why.
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

template <typename T>
T NewMessage() {
  T message = {};
  std::memcpy(message.magic, kMagic, sizeof(kMagic));
  message.layout_version = kLayoutVersion;
  return message;
}

// In a time that does not tell how much of it is right.
bool IsSame(absl::string_view token, absl::string_view shown) {
  if (token.size() != shown.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < token.size(); ++i) {
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

namespace {

// A connection to the ps, and its answer to the greeting.
struct Answer {
  FileDescriptor socket;
  Welcome welcome;
  FileDescriptor fd;
};

absl::StatusOr<Answer> ReadAnswer(FileDescriptor socket) {
  ASSIGN_OR_RETURN(Packet packet,
                   ReceivePacket(socket, sizeof(Welcome) + kMaxRefusalBytes,
                                 kHandshakeTimeout));
  const absl::string_view bytes = packet.bytes;
  ASSIGN_OR_RETURN(const Welcome welcome,
                   ParseMessage<Welcome>(bytes.substr(0, sizeof(Welcome))));
  if (welcome.segment_bytes == 0) {
    return StatusFromBytes(bytes.substr(sizeof(Welcome)));
  }
  return Answer{std::move(socket), welcome, std::move(packet.fd)};
}

absl::StatusOr<Answer> Greet(absl::string_view socket_name,
                             absl::string_view token, Greeting greeting) {
  if (token.size() != kSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: the ps offers a token of ", token.size(),
                     " bytes; wanted ", kSecretBytes));
  }
  ASSIGN_OR_RETURN(FileDescriptor socket, ConnectLocal(socket_name));
  RETURN_IF_ERROR(CheckPeerUser(socket));
  std::memcpy(greeting.token, token.data(), kSecretBytes);
  RETURN_IF_ERROR(SendPacket(socket, BytesOf(greeting)));
  return ReadAnswer(std::move(socket));
}

}  // namespace

absl::StatusOr<SharedPeer> JoinSegment(absl::string_view socket_name,
                                       absl::string_view token) {
  ASSIGN_OR_RETURN(Answer answer,
                   Greet(socket_name, token, NewMessage<Greeting>()));
  const Welcome& welcome = answer.welcome;
  if (welcome.num_slots != kNumSlots || welcome.slot_bytes != kSlotBytes ||
      welcome.segment_bytes != kSegmentBytes || !answer.fd.valid()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shared memory: the ps offers ", welcome.num_slots, " slots of ",
        welcome.slot_bytes, " bytes in ", welcome.segment_bytes, "; wanted ",
        kNumSlots, " of ", kSlotBytes, " in ", kSegmentBytes));
  }
  ASSIGN_OR_RETURN(MemorySegment segment,
                   MemorySegment::Adopt(std::move(answer.fd), kSegmentBytes));
  return SharedPeer{std::move(answer.socket), std::move(segment)};
}

absl::StatusOr<MemorySegment> JoinParameters(absl::string_view socket_name,
                                             absl::string_view token,
                                             int64_t model_epoch,
                                             int64_t size_bytes) {
  auto greeting = NewMessage<Greeting>();
  greeting.wanted = kParameters;
  greeting.model_epoch = model_epoch;
  ASSIGN_OR_RETURN(Answer answer, Greet(socket_name, token, greeting));
  return MemorySegment::Adopt(std::move(answer.fd), size_bytes,
                              MemorySegment::Access::kRead);
}

absl::StatusOr<SegmentClaim> AwaitClaim(const FileDescriptor& socket,
                                        absl::string_view token) {
  return AwaitClaim(socket, [token](absl::string_view shown) {
    return IsSame(token, shown);
  });
}

absl::StatusOr<SegmentClaim> AwaitClaim(
    const FileDescriptor& socket,
    absl::FunctionRef<bool(absl::string_view token)> is_known) {
  RETURN_IF_ERROR(CheckPeerUser(socket));
  ASSIGN_OR_RETURN(const Packet packet,
                   ReceivePacket(socket, sizeof(Greeting), kHandshakeTimeout));
  ASSIGN_OR_RETURN(const Greeting greeting,
                   ParseMessage<Greeting>(packet.bytes));
  if (!is_known({greeting.token, kSecretBytes})) {
    return absl::PermissionDeniedError(
        "shared memory: the peer shows another token than was offered");
  }
  switch (greeting.wanted) {
    case kSegment:
      return SegmentClaim{};
    case kParameters:
      return SegmentClaim{greeting.model_epoch};
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "shared memory: the peer wants ", greeting.wanted, "; there is ",
          kSegment, ", a segment, and ", kParameters, ", the parameters"));
  }
}

absl::StatusOr<MemorySegment> OfferSegment(const FileDescriptor& socket) {
  ASSIGN_OR_RETURN(MemorySegment segment, MemorySegment::Create(kSegmentBytes));
  auto welcome = NewMessage<Welcome>();
  welcome.num_slots = kNumSlots;
  welcome.slot_bytes = kSlotBytes;
  welcome.segment_bytes = kSegmentBytes;
  RETURN_IF_ERROR(SendPacket(socket, BytesOf(welcome), segment.fd()));
  return segment;
}

absl::Status OfferParameters(const FileDescriptor& socket,
                             const MemorySegment& parameters) {
  auto welcome = NewMessage<Welcome>();
  welcome.segment_bytes = parameters.size_bytes();
  return SendPacket(socket, BytesOf(welcome), parameters.fd());
}

absl::Status RefuseClaim(const FileDescriptor& socket,
                         const absl::Status& why) {
  std::string packet(BytesOf(NewMessage<Welcome>()));
  packet += StatusToBytes(why);
  return SendPacket(socket, packet);
}

}  // namespace muster
