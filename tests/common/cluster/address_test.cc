#include "common/cluster/address.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AddressTest, ParsesNamesAndAddresses) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  const Case kCases[] = {
      {"localhost:2222", "localhost", 2222},
      {"ps-0.ps.default.svc.cluster.local:1",
       "ps-0.ps.default.svc.cluster.local", 1},
      {"my_host:65535", "my_host", 65535},
      {"ps0.example.com.:2222", "ps0.example.com", 2222},
      {"10.0.0.1:80", "10.0.0.1", 80},
      {"[::1]:2222", "::1", 2222},
      {"[2001:db8::14]:2222", "2001:db8::14", 2222},
  };
  for (const Case& c : kCases) {
    const auto address = ParseAddress(c.text);
    ASSERT_THAT(address, IsOk());
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
  }
}

TEST(AddressTest, RefusesWhatIsNoAddressAndSaysWhy) {
  struct Case {
    std::string text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"", "has no port"},
      {"localhost", "has no port"},
      {":2222", "has no host"},
      {"localhost:", "from 1 to 65535"},
      {"localhost:0", "from 1 to 65535"},
      {"localhost:65536", "from 1 to 65535"},
      {"localhost:-1", "from 1 to 65535"},
      {"localhost:+80", "from 1 to 65535"},
      {"localhost:22x", "from 1 to 65535"},
      {"localhost: 22", "from 1 to 65535"},
      {"localhost:000080", "from 1 to 65535"},
      {"::1:2222", "needs brackets"},
      {"[::1:2222", "no IPv6"},
      {"[localhost]:2222", "no IPv6"},
      {"[]:2222", "no IPv6"},
      {"999.0.0.1:22", "neither a name nor an address"},
      {"1.2.3:22", "neither"},
      {"a b:22", "neither"},
      {"a..b:22", "neither"},
      {"a..:22", "neither"},
      {".:22", "neither"},
      {"10.0.0.1.:22", "neither"},
      {"-a:22", "neither"},
      {"http//x:22", "neither"},
      {"http://x:22", "is a URL; leave 'http://' out; wanted host:port"},
      {"grpc://x:22/", "is a URL; leave 'grpc://' out"},
      {std::string(64, 'a') + ":22", "neither"},
      {std::string("a\0b:22", 6), "neither"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(ParseAddress(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.wanted), HasSubstr("host:port"))))
        << c.text;
  }
}

TEST(AddressTest, EscapesTheTextInErrors) {
  EXPECT_THAT(ParseAddress("\x1b]0;x\n:22"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\\x1b]0;x"), Not(HasSubstr("\n")))));
}

TEST(AddressTest, KnowsLoopbackWithoutDns) {
  for (const char* text : {"localhost:1", "LocalHost:1", "localhost.:1",
                           "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseAddress(text))) << text;
  }
  for (const char* text :
       {"10.0.0.1:1", "[2001:db8::1]:1", "127.example.com:1", "h:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseAddress(text))) << text;
  }
}

TEST(AddressTest, AnyIsEveryAddressOfAKind) {
  for (const char* text : {"0.0.0.0:1", "[::]:1", "[0::0]:1"}) {
    EXPECT_TRUE(IsAny(*ParseAddress(text))) << text;
  }
  for (const char* text : {"0.0.0.1:1", "[::1]:1", "localhost:1", "h:1"}) {
    EXPECT_FALSE(IsAny(*ParseAddress(text))) << text;
  }
}

}  // namespace
}  // namespace muster
