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
constexpr size_t kGreetingBytes = 56;
constexpr int64_t kEpoch = 7;

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

  // The outcome of a worker at a ps that answers with `serve`.
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

  // The outcome of a ps at a worker that greets with `bytes`.
  absl::Status OfferTo(const std::string& bytes) {
    const FileDescriptor worker = *ConnectLocal(name_);
    const FileDescriptor peer = Accept();
    EXPECT_THAT(SendPacket(worker, bytes), IsOk());
    return Offer(peer).status();
  }

  // The ps's side to who wants a segment.
  absl::StatusOr<MemorySegment> Offer(const FileDescriptor& peer) {
    const absl::StatusOr<SegmentClaim> claim = AwaitClaim(peer, token_);
    if (!claim.ok()) return claim.status();
    EXPECT_FALSE(claim->parameters_of.has_value());
    return OfferSegment(peer);
  }

  // The same to who wants parameters.
  absl::StatusOr<MemorySegment> JoinParametersWith(
      const std::function<void(const FileDescriptor&)>& serve) {
    absl::StatusOr<MemorySegment> joined = absl::UnknownError("not joined");
    std::thread join([&] {
      joined = JoinParameters(name_, token_, kEpoch, kParameterBytes);
    });
    FileDescriptor peer;
    while (!peer.valid()) peer = Accept();
    const absl::StatusOr<SegmentClaim> claim = AwaitClaim(peer, token_);
    EXPECT_THAT(claim, IsOk());
    if (claim.ok()) {
      EXPECT_EQ(claim->parameters_of, kEpoch);
    }
    serve(peer);
    join.join();
    return joined;
  }

  static std::string Greeting(const std::string& token, char version = 3,
                              char wanted = 0) {
    return std::string("MUSTERSM") + version + std::string(3, '\0') + wanted +
           std::string(3, '\0') + token + std::string(8, '\0');
  }

  // A ps's answer, by hand.
  static std::string Welcome(uint32_t slots, uint64_t slot_bytes,
                             uint64_t segment_bytes) {
    std::string bytes("MUSTERSM\3\0\0\0", 12);
    bytes.append(reinterpret_cast<const char*>(&slots), sizeof(slots));
    bytes.append(reinterpret_cast<const char*>(&slot_bytes), 8);
    return bytes.append(reinterpret_cast<const char*>(&segment_bytes), 8);
  }

  static constexpr size_t kParameterBytes = 12345;
  const std::string name_ = "muster-test-" + NewSecret();
  const std::string token_ = NewSecret();
  FileDescriptor listener_;
};

TEST_F(HandshakeTest, BothHaveTheSameMemory) {
  absl::StatusOr<MemorySegment> offered = absl::UnknownError("not offered");
  const absl::StatusOr<SharedPeer> joined =
      JoinWith([&](const FileDescriptor& peer) { offered = Offer(peer); });
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
       {Greeting(token_, /*version=*/2),
        Greeting(token_, /*version=*/3, /*wanted=*/2),
        Greeting(token_).substr(1), Greeting(token_) + "x",
        "X" + Greeting(token_).substr(1), std::string("x"),
        std::string(1 << 16, 'x')}) {
    EXPECT_THAT(OfferTo(bytes), StatusIs(absl::StatusCode::kInvalidArgument))
        << bytes.size();
  }
}

TEST_F(HandshakeTest, APeerThatSaysNothingIsNotWaitedForLong) {
  const FileDescriptor worker = *ConnectLocal(name_);
  const FileDescriptor peer = Accept();
  EXPECT_THAT(AwaitClaim(peer, token_),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(HandshakeTest, APsThatTurnsAwayIsUnavailable) {
  EXPECT_THAT(JoinWith([](const FileDescriptor& peer) {
                shutdown(peer.get(), SHUT_RDWR);
              }).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HandshakeTest, ParametersAreReadWhereThePsWritesThem) {
  const MemorySegment parameters =
      *MemorySegment::Create(kParameterBytes, MemorySegment::Access::kRead);
  const absl::StatusOr<MemorySegment> joined =
      JoinParametersWith([&](const FileDescriptor& peer) {
        EXPECT_THAT(OfferParameters(peer, parameters), IsOk());
      });
  ASSERT_THAT(joined, IsOk());
  parameters.data()[kParameterBytes - 1] = 'x';
  EXPECT_EQ(joined->data()[kParameterBytes - 1], 'x');
}

TEST_F(HandshakeTest, ParametersOfAnotherSizeAreRefused) {
  const MemorySegment parameters =
      *MemorySegment::Create(kParameterBytes + 1, MemorySegment::Access::kRead);
  EXPECT_THAT(JoinParametersWith([&](const FileDescriptor& peer) {
                EXPECT_THAT(OfferParameters(peer, parameters), IsOk());
              }).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 12346 bytes; wanted 12345")));
}

TEST_F(HandshakeTest, ARefusalSaysWhy) {
  EXPECT_THAT(JoinParametersWith([](const FileDescriptor& peer) {
                EXPECT_THAT(
                    RefuseClaim(peer, absl::AbortedError("no such epoch")),
                    IsOk());
              }).status(),
              StatusIs(absl::StatusCode::kAborted, "no such epoch"));
  // One that is none.
  EXPECT_THAT(JoinParametersWith([](const FileDescriptor& peer) {
                EXPECT_THAT(SendPacket(peer, Welcome(0, 0, 0) + "?"), IsOk());
              }).status(),
              StatusIs(absl::StatusCode::kInternal));
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
