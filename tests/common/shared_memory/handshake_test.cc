#include "common/shared_memory/handshake.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "common/shared_memory/local_socket.h"
#include "common/shared_memory/slot_ring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);
constexpr size_t kGreetingBytes = 48;

// A listener, and one peer at a time that it accepts on a thread.
class HandshakeTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<FileDescriptor> listener = ListenLocal(name_);
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
  }

  FileDescriptor Accept() {
    return FileDescriptor(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  // What a worker says to a ps that answers with `serve`.
  absl::StatusOr<SharedPeer> JoinWith(
      const std::function<void(const FileDescriptor&)>& serve) {
    std::thread join;
    absl::StatusOr<SharedPeer> joined = absl::UnknownError("not joined");
    join = std::thread([&] { joined = JoinSegment(name_, token_); });
    FileDescriptor peer;
    while (!peer.valid()) peer = Accept();
    serve(peer);
    join.join();
    return joined;
  }

  // What a ps says to a worker that greets with `bytes`.
  absl::Status OfferTo(const std::string& bytes) {
    const FileDescriptor worker = *ConnectLocal(name_);
    const FileDescriptor peer = Accept();
    EXPECT_THAT(SendPacket(worker, bytes), IsOk());
    return OfferSegment(peer, token_).status();
  }

  static std::string Greeting(const std::string& token, char version = 2) {
    return std::string("MUSTERSM") + version + std::string(7, '\0') + token;
  }

  // A ps's answer, by hand.
  static std::string Welcome(uint32_t slots, uint64_t slot_bytes,
                             uint64_t segment_bytes) {
    std::string bytes("MUSTERSM\1\0\0\0", 12);
    bytes.append(reinterpret_cast<const char*>(&slots), sizeof(slots));
    bytes.append(reinterpret_cast<const char*>(&slot_bytes), 8);
    return bytes.append(reinterpret_cast<const char*>(&segment_bytes), 8);
  }

  const std::string name_ = "muster-test-" + NewSecret();
  const std::string token_ = NewSecret();
  FileDescriptor listener_;
};

TEST_F(HandshakeTest, BothHaveTheSameMemory) {
  absl::StatusOr<MemorySegment> offered = absl::UnknownError("not offered");
  const absl::StatusOr<SharedPeer> joined =
      JoinWith([&](const FileDescriptor& peer) {
        offered = OfferSegment(peer, token_);
      });
  ASSERT_THAT(offered, IsOk());
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->segment.size_bytes(), kSegmentBytes);
  offered->data()[kSegmentBytes - 1] = 'x';
  EXPECT_EQ(joined->segment.data()[kSegmentBytes - 1], 'x');
}

TEST_F(HandshakeTest, SecretsAreLongAndNeverTheSame) {
  EXPECT_EQ(NewSecret().size(), 32u);
  EXPECT_NE(NewSecret(), NewSecret());
}

TEST_F(HandshakeTest, AnotherTokenGetsNoMemory) {
  EXPECT_THAT(OfferTo(Greeting(NewSecret())),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("another token")));
  EXPECT_THAT(OfferTo(Greeting(token_)), IsOk());
}

TEST_F(HandshakeTest, GreetingsThatMakeNoSenseAreRefused) {
  ASSERT_EQ(Greeting(token_).size(), kGreetingBytes);
  for (const std::string& bytes :
       {Greeting(token_, /*version=*/1), Greeting(token_).substr(1),
        Greeting(token_) + "x", "X" + Greeting(token_).substr(1),
        std::string("x"), std::string(1 << 16, 'x')}) {
    EXPECT_THAT(OfferTo(bytes), StatusIs(absl::StatusCode::kInvalidArgument))
        << bytes.size();
  }
}

TEST_F(HandshakeTest, APeerThatSaysNothingIsNotWaitedForLong) {
  const FileDescriptor worker = *ConnectLocal(name_);
  const FileDescriptor peer = Accept();
  EXPECT_THAT(OfferSegment(peer, token_),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(HandshakeTest, APsThatTurnsAwayIsUnavailable) {
  EXPECT_THAT(JoinWith([](const FileDescriptor& peer) {
                shutdown(peer.get(), SHUT_RDWR);
              }).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HandshakeTest, NoSocketOfThatNameIsNotFound) {
  EXPECT_THAT(JoinSegment(NewSecret(), token_).status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(JoinSegment(name_, "short").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(HandshakeTest, OffersThatMakeNoSenseAreRefused) {
  const MemorySegment whole = *MemorySegment::Create(kSegmentBytes);
  const MemorySegment small = *MemorySegment::Create(4096);
  const FileDescriptor open(memfd_create("open", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(open.get(), kSegmentBytes), 0);
  struct Offer {
    std::string welcome;
    int fd;
  };
  const std::string right = Welcome(kNumSlots, kSlotBytes, kSegmentBytes);
  for (const Offer& offer :
       {Offer{right, -1}, Offer{right, small.fd()}, Offer{right, open.get()},
        Offer{Welcome(1u << 31, kSlotBytes, kSegmentBytes), whole.fd()},
        Offer{Welcome(kNumSlots, UINT64_MAX, kSegmentBytes), whole.fd()},
        Offer{Welcome(kNumSlots, kSlotBytes, UINT64_MAX), whole.fd()},
        Offer{right.substr(4), whole.fd()}, Offer{"x", whole.fd()}}) {
    EXPECT_THAT(JoinWith([&](const FileDescriptor& peer) {
                  ASSERT_THAT(ReceivePacket(peer, 100, kSoon), IsOk());
                  ASSERT_THAT(SendPacket(peer, offer.welcome, offer.fd),
                              IsOk());
                }).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << offer.welcome.size() << " bytes, descriptor " << offer.fd;
  }
}

}  // namespace
}  // namespace muster
