#include "common/rpc/server/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddressTest, BindGoesBeforeTheClusterAddress) {
  EXPECT_THAT(ChooseListenAddress("localhost:1", "", false),
              IsOkAndHolds("localhost:1"));
  EXPECT_THAT(ChooseListenAddress("h1:1", "127.0.0.1:0", false),
              IsOkAndHolds("127.0.0.1:0"));
}

TEST(ListenAddressTest, OtherMachinesReachNeedsPermission) {
  for (const char* const address : {"h1:2222", "10.0.0.1:2222", "0.0.0.0:0"}) {
    EXPECT_THAT(ChooseListenAddress(address, "", false),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         HasSubstr("--allow_insecure_network")));
    EXPECT_THAT(ChooseListenAddress(address, "", true), IsOkAndHolds(address));
  }
}

TEST(ListenAddressTest, NamesWhatDoesNotParse) {
  EXPECT_THAT(
      ChooseListenAddress("localhost:1", "localhost", false),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'localhost'")));
}

TEST(ListenAddressTest, ListenOnTellsATakenPortFromAForeignAddress) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  // localhost may have an IPv6 address too, which is free.
  EXPECT_THAT(ListenOn(absl::StrCat("localhost:", ntohs(address.sin_port))),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
  close(fd);
  EXPECT_THAT(ListenOn("127.0.0.1:0"), IsOk());
  // TEST-NET-1 belongs to nobody.
  EXPECT_THAT(
      ListenOn("192.0.2.1:0"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("192.0.2.1:0")));
}

// getaddrinfo names both kinds of loopback addresses; peers may use either.
TEST(ListenAddressTest, AllAddressesOfANameHaveOnePort) {
  const auto listening = ListenOn("localhost:0");
  ASSERT_THAT(listening, IsOk());
  for (const FileDescriptor& socket : listening->sockets) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    ASSERT_EQ(
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size),
        0);
    // At the same place for both.
    EXPECT_EQ(ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port),
              listening->port);
  }
  EXPECT_THAT(ListenOn(absl::StrCat("localhost:", listening->port)),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace muster
