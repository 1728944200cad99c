#include "common/rpc/tcp/greeting.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tensor_magic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/rpc/tcp/memory_channel.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kToken = "0123456789abcdef0123456789abcdef";

// Who connects is the test.
class GreetingTest : public testing::Test {
 protected:
  GreetingTest()
      : greeting_(Connect(), [this](FileDescriptor socket) {
          ++opened_;
          return MakePlainChannel(std::move(socket));
        }) {}

  FileDescriptor Connect() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    peer_ = FileDescriptor(ends[0]);
    return FileDescriptor(ends[1]);
  }
  void Send(absl::string_view bytes) {
    EXPECT_EQ(send(peer_.get(), bytes.data(), bytes.size(), 0), bytes.size());
  }

  FileDescriptor peer_;
  int opened_ = 0;
  AcceptedGreeting greeting_;
};

TEST_F(GreetingTest, SingleBytes_EndWithTheToken) {
  const int fd = greeting_.fd();
  const std::string bytes = absl::StrCat(kTensorMagic, kToken);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_THAT(greeting_.Proceed(), IsOkAndHolds(false)) << i;
    EXPECT_EQ(opened_, 1) << i;
    EXPECT_FALSE(greeting_.wants_to_send());
    Send(bytes.substr(i, 1));
  }
  EXPECT_THAT(greeting_.Proceed(), IsOkAndHolds(true));
  EXPECT_EQ(greeting_.token(), kToken);
  EXPECT_EQ(greeting_.fd(), fd);
  EXPECT_EQ(greeting_.ReleaseChannel()->fd(), fd);
}

TEST_F(GreetingTest, AllAtOnce_LeavesTheBytesBehindTheToken) {
  Send(absl::StrCat(kTensorMagic, kToken, "frame"));
  EXPECT_THAT(greeting_.Proceed(), IsOkAndHolds(true));
  EXPECT_EQ(greeting_.token(), kToken);
  char rest[6] = {};
  const iovec piece = {rest, sizeof(rest)};
  EXPECT_THAT(greeting_.ReleaseChannel()->Receive({&piece, 1}),
              IsOkAndHolds(5));
  EXPECT_STREQ(rest, "frame");
}

TEST_F(GreetingTest, OtherFirstBytes_AreRefusedAtTheFirstThatDiffers) {
  Send(absl::StrCat(kTensorMagic.substr(0, 4), "X"));
  EXPECT_THAT(greeting_.Proceed(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not those of a connection for tensors")));
}

TEST_F(GreetingTest, ClosedWithinTheMagic_IsUnavailable) {
  Send(kTensorMagic.substr(0, 3));
  EXPECT_THAT(greeting_.Proceed(), IsOkAndHolds(false));
  peer_ = FileDescriptor();
  EXPECT_THAT(greeting_.Proceed(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(GreetingTest, ClosedWithinTheToken_IsUnavailable) {
  Send(absl::StrCat(kTensorMagic, kToken.substr(1)));
  EXPECT_THAT(greeting_.Proceed(), IsOkAndHolds(false));
  peer_ = FileDescriptor();
  EXPECT_THAT(greeting_.Proceed(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(greeting_.token(), kToken.substr(1));
}

// Later a loop would know the descriptor, which is closed with it.
TEST_F(GreetingTest, ChannelThatCannotBeOpened_IsTheFirstTurnsError) {
  AcceptedGreeting greeting(Connect(), [](FileDescriptor) {
    return absl::UnauthenticatedError("no keys");
  });
  EXPECT_THAT(greeting.Proceed(),
              StatusIs(absl::StatusCode::kUnauthenticated, "no keys"));
}

TEST(AddWelcomeTest, Ok_IsAFrameWithoutFields) {
  FrameSender sender;
  MemoryChannel channel;
  AddWelcome(absl::OkStatus(), &sender);
  EXPECT_THAT(sender.Pump(&channel), IsOk());
  EXPECT_EQ(channel.sent(), EncodeFrameHeader({}));
}

TEST(AddWelcomeTest, Refusal_HasTheStatusAsFields) {
  FrameSender sender;
  MemoryChannel channel;
  AddWelcome(absl::UnauthenticatedError("no such offer"), &sender);
  EXPECT_THAT(sender.Pump(&channel), IsOk());
  const auto header =
      DecodeFrameHeader(channel.sent().substr(0, kFrameHeaderBytes));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->kind,
            static_cast<uint32_t>(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(StatusFromBytes(channel.sent().substr(kFrameHeaderBytes)),
              StatusIs(absl::StatusCode::kUnauthenticated, "no such offer"));
}

}  // namespace
}  // namespace muster
