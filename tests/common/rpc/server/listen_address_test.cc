#include "common/rpc/server/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/host_flags.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(ListenAddressTest, AnyAddressOfOneKindIsNoneOfTheOther) {
  const auto listening = ListenOn("0.0.0.0:0");
  ASSERT_THAT(listening, IsOk());
  ASSERT_EQ(listening->sockets.size(), 1);
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(listening->sockets[0].get(),
                        reinterpret_cast<sockaddr*>(&address), &size),
            0);
  EXPECT_EQ(address.ss_family, AF_INET);
}

// ---- Who can come -------------------------------------------------------

// Hosts as /etc/hosts of node1 may have them. What is not there does not
// resolve; a number means itself.
std::vector<std::string> OnNode1(const std::string& host) {
  static const auto& hosts = *new std::map<std::string, std::string>{
      {"node1", "127.0.1.1"},     {"NODE1", "127.0.1.1"},
      {"alias", "127.0.0.1"},     {"node2", "10.0.0.2"},
      {"127.0.0.2", "127.0.0.2"}, {"10.0.0.1", "10.0.0.1"}};
  const auto found = hosts.find(host);
  if (found == hosts.end()) return {};
  return {found->second};
}

absl::Status CanCome(const std::string& ps_hosts,
                     const std::string& worker_hosts,
                     const TaskId& self = MakeTaskId("ps", 0)) {
  const auto cluster = ParseHostFlags(ps_hosts, worker_hosts);
  EXPECT_THAT(cluster, IsOk());
  return CheckOthersCanCome(*cluster, self, "", Reporter(), OnNode1);
}

// The lines about ps 0 that listens at `bind`, or its error.
absl::StatusOr<std::vector<std::string>> LinesOfBind(const std::string& bind) {
  const auto cluster = ParseHostFlags("10.0.0.1:2222", "node2:2223");
  ReportedLines lines;
  const absl::Status status = CheckOthersCanCome(
      *cluster, MakeTaskId("ps", 0), bind, lines.reporter(), OnNode1);
  if (!status.ok()) return status;
  return lines.lines();
}

TEST(CheckOthersCanComeTest, AnOwnNameThatMeansLoopbackIsRefusedByName) {
  const absl::Status status = CanCome("node1:2222", "node2:2223");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  for (const char* const words :
       {"listen on node1:2222: node1 means 127.0.1.1 here",
        "/job:worker/task:0 is node2:2223", "/etc/hosts",
        "--bind=ADDRESS:2222"}) {
    EXPECT_THAT(status.message(), HasSubstr(words));
  }
  // The other way round, and beside one that no name server knows yet.
  EXPECT_THAT(CanCome("node2:2222", "node1:2223", MakeTaskId("worker", 0)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CanCome("node1:2222", "pod-3:2223"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CanCome("node1:2222", "node1:2223,10.0.0.3:2222"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CheckOthersCanComeTest, ABindByANameThatMeansLoopback_IsRefused) {
  EXPECT_THAT(LinesOfBind("node1:4100"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("listen on node1:4100: node1 means 127.0.1.1 "
                                 "here, where no other host can connect, and "
                                 "/job:worker/task:0 is node2:2223")));
  EXPECT_THAT(LinesOfBind("10.0.0.1:0"), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(LinesOfBind("0.0.0.0:0"), IsOkAndHolds(IsEmpty()));
}

TEST(CheckOthersCanComeTest, ABindThatSaysLoopback_IsSaid) {
  EXPECT_THAT(LinesOfBind("127.0.0.2:0"),
              IsOkAndHolds(ElementsAre(HasSubstr("this machine alone"))));
}

TEST(CheckOthersCanComeTest, OneMachineMayMeanLoopback) {
  EXPECT_THAT(CanCome("node1:2222", "node1:2223,NODE1:2224"), IsOk());
  EXPECT_THAT(CanCome("node1:2222", "alias:2223,127.0.0.2:2222"), IsOk());
}

TEST(CheckOthersCanComeTest, AnOwnAddressOfTheNetworkIsLetBe) {
  EXPECT_THAT(CanCome("10.0.0.1:2222", "node2:2223"), IsOk());
  // Listening will tell.
  EXPECT_THAT(CanCome("pod-0:2222", "node2:2223"), IsOk());
}

TEST(CheckOthersCanComeTest, TheSystemIsAskedWhatAHostMeans) {
  EXPECT_THAT(LookUpHost("127.0.0.2"), ElementsAre("127.0.0.2"));
  EXPECT_THAT(LookUpHost("::1"), ElementsAre("::1"));
  EXPECT_THAT(LookUpHost("localhost"), Contains("127.0.0.1"));
}

}  // namespace
}  // namespace muster
