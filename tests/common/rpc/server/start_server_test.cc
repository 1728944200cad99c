#include "common/rpc/server/start_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/reporter.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NotNull;
using ::testing::StartsWith;

// Holds a port of 127.0.0.1 until Free.
class TakenPort {
 public:
  TakenPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~TakenPort() { Free(); }

  void Free() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

// Frees the port when it is asked for the time: between two tries.
class FreeingClock : public Clock {
 public:
  explicit FreeingClock(TakenPort* port) : port_(port) {}

  absl::Time Now() const override {
    if (++calls_ > 1) port_->Free();
    return absl::UnixEpoch();
  }

 private:
  TakenPort* const port_;
  mutable int calls_ = 0;
};

class StartServerTest : public testing::Test {
 protected:
  PortWait Wait(absl::Duration limit) { return {limit, &clock_, &latch_}; }

  std::unique_ptr<grpc::Server> Serve(ServerListener* listener) {
    ++tries_;
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&nothing_);
    listener->AddTo(&builder, grpc::InsecureServerCredentials());
    return builder.BuildAndStart();
  }

  const MonotonicClock clock_{};
  StopLatch latch_;
  int tries_ = 0;
  const std::function<std::unique_ptr<grpc::Server>(ServerListener*)> serve_ =
      [this](ServerListener* listener) { return Serve(listener); };
  grpc::CallbackGenericService nothing_;
};

TEST_F(StartServerTest, GivesTheServer) {
  const auto started =
      StartServer("127.0.0.1:0", Wait(absl::ZeroDuration()), serve_);
  ASSERT_THAT(started, IsOk());
  EXPECT_THAT(started->server, NotNull());
  EXPECT_GT(started->listener->port(), 0);
  EXPECT_EQ(tries_, 1);
}

TEST_F(StartServerTest, AsksAgainWhenGrpcRefused) {
  bool refused = false;
  const auto serve =
      [&](ServerListener* listener) -> std::unique_ptr<grpc::Server> {
    if (refused) return Serve(listener);
    refused = true;
    return nullptr;
  };
  EXPECT_THAT(StartServer("127.0.0.1:0", Wait(absl::Seconds(10)), serve),
              IsOk());
}

TEST_F(StartServerTest, WaitsUntilThePortIsFree) {
  TakenPort taken;
  const FreeingClock clock(&taken);
  const PortWait wait = {absl::Seconds(10), &clock, &latch_};
  EXPECT_THAT(StartServer(taken.address(), wait, serve_), IsOk());
  EXPECT_EQ(tries_, 1) << "asked while the port was taken";
}

TEST_F(StartServerTest, SaysAtOnceThatItWaitsForATakenPort) {
  TakenPort taken;
  const FreeingClock clock(&taken);
  ReportedLines lines;
  const PortWait wait = {absl::Seconds(10), &clock, &latch_, lines.reporter(),
                         Reporter::kWarning};
  EXPECT_THAT(StartServer(taken.address(), wait, serve_), IsOk());
  EXPECT_THAT(lines.lines(),
              ElementsAre(AllOf(StartsWith("W "), HasSubstr(taken.address()),
                                HasSubstr("trying again for 10s"))));
}

TEST_F(StartServerTest, NamesAPortThatStaysTaken) {
  const TakenPort taken;
  EXPECT_THAT(
      StartServer(taken.address(), Wait(absl::ZeroDuration()), serve_),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(taken.address())));
  EXPECT_EQ(tries_, 0);
}

TEST_F(StartServerTest, AStopEndsTheWait) {
  const TakenPort taken;
  latch_.Stop({143, "SIGTERM"});
  EXPECT_THAT(StartServer(taken.address(), Wait(absl::Minutes(10)), serve_),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(StartServerTest, DoesNotWaitForAForeignAddress) {
  // TEST-NET-1 belongs to nobody.
  EXPECT_THAT(
      StartServer("192.0.2.1:0", Wait(absl::Minutes(10)), serve_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("192.0.2.1:0")));
}

}  // namespace
}  // namespace muster
