#include "common/rpc/loopback_sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "common/rpc/channel_settings.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback_server.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::SizeIs;

// The congestion control of each connected TCP socket of this process.
std::multiset<std::string> Congestion() {
  std::multiset<std::string> found;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    char name[16] = {};
    socklen_t name_size = sizeof(name) - 1;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_size) == 0) {
      found.insert(name);
    }
  }
  closedir(folder);
  return found;
}

TEST(LoopbackSocketsTest, NeitherEndOfAConnectionPaces) {
  grpc::CallbackGenericService service;
  const LoopbackServer server([&service](grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service);
  });
  const auto channel =
      OpenChannel(server.address(), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(30)));
  const std::multiset<std::string> congestion = Congestion();
  EXPECT_THAT(congestion, SizeIs(2));
  EXPECT_THAT(congestion, Each(AnyOf("cubic", "reno")));
}

}  // namespace
}  // namespace muster
