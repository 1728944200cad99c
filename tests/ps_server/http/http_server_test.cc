// Over real sockets on loopback, spoken to byte by byte.
#include "ps_server/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/credentials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/http/metrics_text.h"
#include "ps_server/http/status_json.h"
#include "tests/ps_server/http/small_look.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A client's end of a connection.
class Client {
 public:
  // `receive_bytes`: of its socket's buffer; 0: the system's choice.
  explicit Client(int port, int receive_bytes = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes,
                 sizeof(receive_bytes));
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
  }

  void Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(sent);
    }
  }
  // The first four bytes, once they are there.
  std::string ReadSome() {
    char bytes[4];
    EXPECT_EQ(recv(fd_.get(), bytes, sizeof(bytes), MSG_WAITALL), 4);
    return std::string(bytes, sizeof(bytes));
  }
  // All until the server ends the connection. While nothing comes its time
  // passes.
  std::string ReadToEnd(FakeClock* clock) {
    constexpr int kWaitMs = 20;
    std::string all;
    char bytes[4096];
    for (;;) {
      pollfd poll_for = {fd_.get(), POLLIN, 0};
      if (poll(&poll_for, 1, kWaitMs) == 0) {
        clock->Advance(HttpConnection::kPatience);
        continue;
      }
      const ssize_t received = recv(fd_.get(), bytes, sizeof(bytes), 0);
      if (received <= 0) return all;
      all.append(bytes, received);
    }
  }

 private:
  FileDescriptor fd_;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() { Start(); }

  HttpServer::Options Options() {
    HttpServer::Options options;
    options.address = "127.0.0.1:0";
    options.pages.own_hosts = {"ps0.example", ""};
    options.pages.serves = [this] { return serves_; };
    options.ask = [this](Looker::Reach reach, Looker::Done done) {
      Ask(reach, std::move(done));
    };
    options.open = InsecureCredentials().accept_over;
    options.may_look = [this](absl::string_view pem) {
      return pem.empty() && may_look_;
    };
    options.clock = &clock_;
    return options;
  }
  void Start() {
    auto server = HttpServer::Start(Options());
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  void Ask(Looker::Reach reach, Looker::Done done) {
    absl::MutexLock lock(&mu_);
    reach_ = reach;
    if (gives_looks_) {
      done(look_);
    } else {
      waiting_.push_back(std::move(done));
    }
  }

  std::string Exchange(absl::string_view bytes) {
    Client client(server_->port());
    client.Send(bytes);
    return client.ReadToEnd(&clock_);
  }
  std::string Get(absl::string_view path, absl::string_view more = "") {
    return Exchange(absl::StrCat(
        "GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", more, "\r\n"));
  }

  FakeClock clock_;
  bool serves_ = true;
  bool may_look_ = true;
  std::shared_ptr<const PsLook> look_ =
      std::make_shared<const PsLook>(SmallLook());

  absl::Mutex mu_;
  bool gives_looks_ ABSL_GUARDED_BY(mu_) = true;
  Looker::Reach reach_ ABSL_GUARDED_BY(mu_) = Looker::Reach::kOwnTask;
  std::vector<Looker::Done> waiting_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AScrape_IsAnsweredWithTheMetricsOfThisTask) {
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("Content-Type: text/plain; version=0.0.4"),
                    EndsWith(absl::StrCat("\r\n\r\n", MetricsText(*look_)))));
  absl::MutexLock lock(&mu_);
  EXPECT_EQ(reach_, Looker::Reach::kOwnTask);
}

TEST_F(HttpServerTest, TheStatus_IsOfAllTasks) {
  EXPECT_THAT(Get("/status.json"),
              AllOf(HasSubstr("Content-Type: application/json"),
                    EndsWith(absl::StrCat("\r\n\r\n", StatusJson(*look_)))));
  absl::MutexLock lock(&mu_);
  EXPECT_EQ(reach_, Looker::Reach::kAllTasks);
}

TEST_F(HttpServerTest, ThePage_MayLoadNothingFromElsewhere) {
  EXPECT_THAT(Get("/"),
              AllOf(HasSubstr("default-src 'self'; script-src 'sha256-"),
                    HasSubstr("frame-ancestors 'none'"),
                    HasSubstr("<title>Muster"), EndsWith("</html>\n")));
}

TEST_F(HttpServerTest, ItsHealth_IsWhetherItServes) {
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  serves_ = false;
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServerTest, WhatIsNotThere_Is404) {
  EXPECT_THAT(Get("/../etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/metrics/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/%6detrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnotherMethodThanGet_Is405AndItsBodyUnread) {
  const std::string body(1 << 20, 'x');
  for (const char* const method : {"POST", "PUT", "DELETE", "HEAD"}) {
    EXPECT_THAT(Exchange(absl::StrCat(method,
                                      " /metrics HTTP/1.1\r\n"
                                      "Host: localhost\r\nContent-Length: ",
                                      body.size(), "\r\n\r\n", body)),
                AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET")))
        << method;
  }
}

TEST_F(HttpServerTest, WhoseCertificateMayNotLook_Is403) {
  may_look_ = false;
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 403"));
}

class HttpServerHostTest : public HttpServerTest,
                           public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Own, HttpServerHostTest,
                         testing::Values("localhost", "LOCALHOST:1234",
                                         "127.0.0.1:9180", "127.9.9.9",
                                         "[::1]:80", "ps0.example",
                                         "PS0.example.:1"));

TEST_P(HttpServerHostTest, AnOwnHost_IsAnswered) {
  EXPECT_THAT(Exchange(absl::StrCat(
                  "GET /metrics HTTP/1.1\r\nHost: ", GetParam(), "\r\n\r\n")),
              StartsWith("HTTP/1.1 200"));
}

class HttpServerOtherHostTest
    : public HttpServerTest,
      public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Other, HttpServerOtherHostTest,
    testing::Values("Host: evil.example\r\n", "Host: 10.0.0.1\r\n",
                    "Host: localhost.evil.example\r\n", "Host:\r\n", "",
                    "Host: localhost\r\nHost: evil.example\r\n",
                    "X-Forwarded-Host: localhost\r\n",
                    "Host: [::1\r\nHost: x\r\n", "Host: 127.0.0.1.nip.io\r\n"));

TEST_P(HttpServerOtherHostTest, AnotherHost_Is421) {
  EXPECT_THAT(
      Exchange(absl::StrCat("GET /metrics HTTP/1.1\r\n", GetParam(), "\r\n")),
      StartsWith("HTTP/1.1 421"));
}

class HttpServerNoHttpTest : public HttpServerTest,
                             public testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(
    Bytes, HttpServerNoHttpTest,
    testing::Values(std::string("\r\n\r\n"), std::string("SSH-2.0-x\r\n\r\n"),
                    std::string("\x16\x03\x01\x02\x00\x01", 6),
                    std::string(20000, '\0'), std::string(20000, 'a'),
                    std::string("GET /\r\n\r\n"),
                    std::string("GET / HTTP/9.9\r\n\r\n"),
                    "GET /" + std::string(9000, 'a'),
                    "GET / HTTP/1.1\r\nHost: " + std::string(9000, 'a'),
                    "GET / HTTP/1.1\r\n" + std::string(20000, '\n'),
                    std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")));

TEST_P(HttpServerNoHttpTest, WhatIsNoRequest_IsRefusedOrLeftAndOthersServed) {
  EXPECT_THAT(Exchange(GetParam()), AnyOf(IsEmpty(), StartsWith("HTTP/1.1 4")));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AHeadInPieces_IsPutTogether) {
  Client client(server_->port());
  for (const char byte :
       absl::string_view("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")) {
    client.Send(std::string(1, byte));
  }
  EXPECT_THAT(client.ReadToEnd(&clock_), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ManyRanges_GetTheWholeOnce) {
  std::string ranges = "Range: bytes=0-";
  while (ranges.size() < 8000) ranges += ",0-";
  const std::string answer = Get("/metrics", absl::StrCat(ranges, "\r\n"));
  EXPECT_THAT(answer,
              AllOf(StartsWith("HTTP/1.1 200"), EndsWith(MetricsText(*look_))));
}

TEST_F(HttpServerTest, WhoTakesCompressed_GetsItPlain) {
  EXPECT_THAT(
      Get("/metrics", "Accept-Encoding: br, gzip\r\n"),
      AllOf(Not(HasSubstr("Content-Encoding")), EndsWith(MetricsText(*look_))));
}

TEST_F(HttpServerTest, WhileTheShardIsBusy_AScrapeIs503) {
  {
    absl::MutexLock lock(&mu_);
    gives_looks_ = false;
  }
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ALookThatComesAfterTheServersEnd_IsDropped) {
  {
    absl::MutexLock lock(&mu_);
    gives_looks_ = false;
  }
  Client client(server_->port());
  client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::vector<Looker::Done>* waiting) { return !waiting->empty(); },
        &waiting_));
  }
  server_.reset();
  absl::MutexLock lock(&mu_);
  waiting_.front()(look_);
  EXPECT_THAT(client.ReadToEnd(&clock_), IsEmpty());
}

TEST_F(HttpServerTest, SlowScrapers_GiveWayAndGo) {
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(std::make_unique<Client>(server_->port()));
    slow.back()->Send("GET /metrics HT");
  }
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
  for (const auto& client : slow)
    EXPECT_THAT(client->ReadToEnd(&clock_), IsEmpty());
}

TEST_F(HttpServerTest, WhoDoesNotReadTheAnswer_IsLeft) {
  PsLook large = SmallLook();
  large.shard.models.resize(20000, large.shard.models.front());
  look_ = std::make_shared<const PsLook>(std::move(large));
  Client client(server_->port(), /*receive_bytes=*/4096);
  client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.ReadSome(), "HTTP");
  clock_.Advance(2 * HttpConnection::kPatience);
  EXPECT_LT(client.ReadToEnd(&clock_).size(), MetricsText(*look_).size());
}

TEST_F(HttpServerTest, ATakenPort_IsSaid) {
  HttpServer::Options options = Options();
  options.address = absl::StrCat("127.0.0.1:", server_->port());
  EXPECT_THAT(HttpServer::Start(options),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("Address already in use")));
}

TEST_F(HttpServerTest, AForeignAddress_IsSaid) {
  HttpServer::Options options = Options();
  options.address = "192.0.2.1:0";
  EXPECT_THAT(HttpServer::Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is it an address of this machine?")));
}

}  // namespace
}  // namespace muster
