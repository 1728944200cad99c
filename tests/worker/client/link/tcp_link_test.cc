// The link with a ps whose end of TCP is in this test's hands, and another link
// that answers in this process.
#include "worker/client/link/tcp_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "common/rpc/served_calls.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tensor_magic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/link/tensor_server.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kOther[] = "over the other link";

// What the links of a test have below them.
struct Below {
  absl::Mutex mu;
  // The answers to calls for an offer; the last one stays.
  std::deque<absl::StatusOr<TcpOffer>> offers ABSL_GUARDED_BY(mu);
  int asked ABSL_GUARDED_BY(mu) = 0;
  int greeted ABSL_GUARDED_BY(mu) = 0;

  absl::StatusOr<TcpOffer> NextOffer() {
    absl::MutexLock lock(&mu);
    ++asked;
    const absl::StatusOr<TcpOffer> offer = offers.front();
    if (offers.size() > 1) offers.pop_front();
    return offer;
  }
  int times_asked() {
    absl::MutexLock lock(&mu);
    return asked;
  }
};

// Answers at once.
class OtherLink : public ParameterLink {
 public:
  explicit OtherLink(Below* below) {
    calls_.Handle(kTcpOfferCall, [below](const TcpOfferRequest&, absl::Time,
                                         ReplyCallback<TcpOffer> done) {
      done(below->NextOffer());
    });
    calls_.Handle(kHelloCall, [](const HelloRequest&, absl::Time,
                                 ReplyCallback<HelloReply> done) {
      HelloReply reply;
      reply.set_ps_incarnation(7);
      done(reply);
    });
  }

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    calls_.CallBytes(method, std::move(request), deadline, std::move(done));
  }
  void Load(Frame<LoadPart>, absl::Time,
            ReplyCallback<LoadReply> done) override {
    done(LoadReply());
  }
  void Pull(const PullRequest&, absl::Time,
            ReplyCallback<Frame<PullReply>> done) override {
    done(Frame<PullReply>{{}, absl::Cord(kOther)});
  }
  void Push(Frame<PushPart>, absl::Time,
            ReplyCallback<Frame<PushReply>> done) override {
    done(Frame<PushReply>{{}, absl::Cord(kOther)});
  }
  void ReadSnapshot(const ReadSnapshotRequest&, absl::Time,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    done(Frame<SnapshotPart>{{}, absl::Cord(kOther)});
  }

 private:
  ServedCalls calls_;
};

TcpOffer MakeOffer(char digit = '1') {
  TcpOffer offer;
  offer.set_token(std::string(kTensorTokenBytes, digit));
  return offer;
}

class TcpLinkTest : public testing::Test {
 protected:
  TcpLinkTest() {
    options_.peer = {"/job:ps/task:0", server_.address()};
    options_.open = [](FileDescriptor socket) {
      return MakePlainChannel(std::move(socket));
    };
    options_.patience = absl::Seconds(60);
    options_.reporter = lines_.reporter();
    options_.clock = &clock_;
    Offer({MakeOffer()});
  }

  void Offer(std::deque<absl::StatusOr<TcpOffer>> offers) {
    absl::MutexLock lock(&below_.mu);
    below_.offers = std::move(offers);
  }
  // To be called when options_ are set.
  ParameterLink* link() {
    if (link_ == nullptr) {
      link_ = std::make_unique<TcpLink>(options_,
                                        std::make_unique<OtherLink>(&below_));
    }
    return link_.get();
  }
  absl::Time Soon() const { return clock_.Now() + absl::Seconds(60); }

  // What the values of a pull say.
  absl::StatusOr<std::string> Pull() {
    const auto reply = AwaitReply<Frame<PullReply>>(
        [&](auto done) { link()->Pull({}, Soon(), done); });
    if (!reply.ok()) return reply.status();
    return std::string(reply->data);
  }
  absl::StatusOr<HelloReply> Hello() {
    return AwaitCall(*link(), kHelloCall, {}, Soon());
  }
  // Answers `count` requests of the next connection with these values.
  std::thread Serve(int count, const std::string& values) {
    return std::thread([this, count, values] {
      const std::unique_ptr<TensorPeer> peer = server_.Accept();
      for (int i = 0; i < count; ++i) {
        const absl::StatusOr<ReceivedFrame> frame = peer->Receive();
        ASSERT_THAT(frame, IsOk());
        peer->Answer(frame->header.call, "", values);
      }
      // Until the link closes it.
      while (peer->Receive().ok()) {
      }
    });
  }
  void End(std::thread thread) {
    link_.reset();
    thread.join();
  }

  MonotonicClock clock_;
  ReportedLines lines_;
  TensorServer server_;
  Below below_;
  TcpLink::Options options_;
  std::unique_ptr<ParameterLink> link_;
};

TEST_F(TcpLinkTest, FirstCallWithTensors_ConnectsWithTheOffersToken) {
  ASSERT_THAT(Hello(), IsOk());
  EXPECT_EQ(below_.times_asked(), 0);
  std::string token;
  std::thread ps([&] {
    const std::unique_ptr<TensorPeer> peer = server_.Accept(&token);
    for (int i = 0; i < 2; ++i) {
      const absl::StatusOr<ReceivedFrame> frame = peer->Receive();
      ASSERT_THAT(frame, IsOk());
      peer->Answer(frame->header.call, "", "over TCP");
    }
    EXPECT_FALSE(peer->Receive().ok());
  });
  EXPECT_EQ(*Pull(), "over TCP");
  EXPECT_EQ(*Pull(), "over TCP");
  End(std::move(ps));
  EXPECT_EQ(token, MakeOffer().token());
  EXPECT_EQ(below_.times_asked(), 1);
  EXPECT_THAT(lines_.lines(), ElementsAre("I link to /job:ps/task:0: TCP"));
}

TEST_F(TcpLinkTest, EachCallWithTensors_IsItsMethod) {
  std::vector<uint32_t> methods;
  std::thread ps([&] {
    const std::unique_ptr<TensorPeer> peer = server_.Accept();
    for (int i = 0; i < 5; ++i) {
      const absl::StatusOr<ReceivedFrame> frame = peer->Receive();
      ASSERT_THAT(frame, IsOk());
      methods.push_back(frame->header.kind);
      peer->Answer(frame->header.call, "");
    }
  });
  EXPECT_THAT(Pull(), IsOk());
  EXPECT_THAT(AwaitReply<Frame<PushReply>>(
                  [&](auto done) { link()->Push({}, Soon(), done); }),
              IsOk());
  EXPECT_THAT(
      AwaitReply<LoadReply>([&](auto done) { link()->Load({}, Soon(), done); }),
      IsOk());
  EXPECT_THAT(AwaitReply<Frame<SnapshotPart>>(
                  [&](auto done) { link()->ReadSnapshot({}, Soon(), done); }),
              IsOk());
  EXPECT_THAT(AwaitReply<Frame<PullRowsReply>>(
                  [&](auto done) { link()->PullRows({}, Soon(), done); }),
              IsOk());
  End(std::move(ps));
  EXPECT_THAT(methods, ElementsAre(12, 13, 11, 14, 15));
}

TEST_F(TcpLinkTest, AnswerThatIsNoMessage_IsDamaged) {
  std::thread ps([&] {
    const std::unique_ptr<TensorPeer> peer = server_.Accept();
    peer->Answer(peer->Receive()->header.call, "\xff no message");
    EXPECT_FALSE(peer->Receive().ok());
  });
  const absl::Status status = Pull().status();
  EXPECT_TRUE(IsDamaged(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("PullReply"));
  End(std::move(ps));
}

// ---- Without a connection -------------------------------------------------

TEST_F(TcpLinkTest, PsThatOffersNone_IsSpokenToOverTheOtherAndSaidOnce) {
  Offer({absl::UnimplementedError("unknown method")});
  options_.pauses = {absl::Hours(1), absl::Hours(1), absl::Hours(1)};
  EXPECT_LT(link()->best_part_bytes(), kMaxPartBytes);
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_EQ(link()->best_part_bytes(), kMaxPartBytes);
  EXPECT_EQ(below_.times_asked(), 1);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I link to /job:ps/task:0: gRPC; no TCP: the ps "
                          "offers none"));
}

TEST_F(TcpLinkTest, PsThatOffersNone_FailsHelloWhereTcpIsRequired) {
  Offer({absl::UnimplementedError("unknown method")});
  options_.required = true;
  const std::string words = "/job:ps/task:0 at " + server_.address() +
                            ": no TCP: the ps offers none; start the worker "
                            "with --link=auto or grpc, or see the ps's --link";
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kFailedPrecondition, words));
  // No fence, which would have a step begun anew of which a shard may have
  // parts.
  EXPECT_THAT(Pull(), StatusIs(absl::StatusCode::kUnavailable, words));
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(TcpLinkTest, WhereItIsRequired_HelloWaitsForTheConnection) {
  options_.required = true;
  std::thread ps = Serve(1, "over TCP");
  EXPECT_EQ(Hello()->ps_incarnation(), 7);
  EXPECT_THAT(lines_.lines(), ElementsAre("I link to /job:ps/task:0: TCP"));
  EXPECT_EQ(*Pull(), "over TCP");
  End(std::move(ps));
}

TEST_F(TcpLinkTest, SilentPort_IsGivenUp) {
  options_.patience = absl::Milliseconds(50);
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I link to /job:ps/task:0: gRPC; no TCP: it has "
                          "accepted a connection for tensors and says "
                          "nothing"));
  link_.reset();
  options_.required = true;
  EXPECT_THAT(Pull(), StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("no TCP: it has accepted")));
}

TEST_F(TcpLinkTest, AnotherProgram_IsToldByItsAnswer) {
  const auto answer_in_http = [this] {
    const FileDescriptor socket = server_.AcceptSocket();
    EXPECT_TRUE(WriteAll(socket.get(),
                         "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"));
    char bytes[100];
    while (read(socket.get(), bytes, sizeof(bytes)) > 0) {
    }
  };
  std::thread other(answer_in_http);
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(HasSubstr("gRPC; no TCP: what answers a connection "
                                    "for tensors is no ps task of Muster")));
  End(std::move(other));
  options_.required = true;
  other = std::thread(answer_in_http);
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("--link=auto or grpc")));
  End(std::move(other));
}

TEST_F(TcpLinkTest, RefusedToken_IsTheReason) {
  std::thread ps(
      [&] { server_.AcceptAndRefuse(absl::PermissionDeniedError("not you")); });
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I link to /job:ps/task:0: gRPC; no TCP: not you"));
  End(std::move(ps));
  options_.required = true;
  ps = std::thread(
      [&] { server_.AcceptAndRefuse(absl::PermissionDeniedError("not you")); });
  EXPECT_THAT(Pull(), StatusIs(absl::StatusCode::kPermissionDenied,
                               HasSubstr("no TCP: not you")));
  End(std::move(ps));
}

TEST_F(TcpLinkTest, OfferThatMakesNoSense_IsTheReason) {
  TcpOffer offer;
  offer.set_token("short");
  Offer({offer});
  EXPECT_EQ(*Pull(), kOther);
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("token has 5 bytes")));
}

TEST_F(TcpLinkTest, PsThatIsAway_IsAskedAgainWithTheNextCall) {
  Offer({absl::UnavailableError("connection refused"), MakeOffer()});
  EXPECT_EQ(*Pull(), kOther);
  std::thread ps = Serve(1, "over TCP");
  EXPECT_EQ(*Pull(), "over TCP");
  EXPECT_THAT(lines_.lines(), ElementsAre("I link to /job:ps/task:0: TCP"));
  End(std::move(ps));
}

TEST_F(TcpLinkTest, PsThatIsAway_FailsTheCallWhereTcpIsRequired) {
  Offer({absl::UnavailableError("connection refused"), MakeOffer()});
  options_.required = true;
  EXPECT_THAT(Pull(),
              StatusIs(absl::StatusCode::kUnavailable, "connection refused"));
  std::thread ps = Serve(1, "over TCP");
  EXPECT_EQ(*Pull(), "over TCP");
  End(std::move(ps));
}

TEST_F(TcpLinkTest, PsThatDiesBeforeItsWelcome_IsTriedAgainWhereTcpIsRequired) {
  options_.required = true;
  std::thread ps([this] {
    const FileDescriptor socket = server_.AcceptSocket();
    char greeting[kTensorMagic.size() + kTensorTokenBytes];
    EXPECT_EQ(recv(socket.get(), greeting, sizeof(greeting), MSG_WAITALL),
              sizeof(greeting));
  });
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("no TCP: it takes no connection")));
  ps.join();
  ps = Serve(1, "over TCP");
  EXPECT_THAT(Hello(), IsOk());
  EXPECT_EQ(*Pull(), "over TCP");
  End(std::move(ps));
}

TEST_F(TcpLinkTest, WithoutAConnection_ItIsTriedAgainByItself) {
  Offer({absl::UnimplementedError("not yet"),
         absl::UnimplementedError("not yet"), MakeOffer()});
  constexpr absl::Duration kPause = absl::Milliseconds(1);
  options_.pauses = {kPause, kPause, kPause};
  EXPECT_EQ(*Pull(), kOther);
  std::thread ps = Serve(1, "over TCP");
  lines_.Await(2);
  EXPECT_EQ(*Pull(), "over TCP");
  EXPECT_THAT(lines_.lines(),
              ElementsAre(HasSubstr("no TCP: the ps offers none"),
                          "I link to /job:ps/task:0: TCP"));
  End(std::move(ps));
}

// ---- Losses and the end ---------------------------------------------------

TEST_F(TcpLinkTest, ConnectionLostAmidAnAnswer_TheSecondAttemptIsRight) {
  Offer({MakeOffer('1'), MakeOffer('2')});
  std::string token;
  std::thread ps([&] {
    std::unique_ptr<TensorPeer> peer = server_.Accept();
    const uint64_t call = peer->Receive()->header.call;
    peer->SendBytes(
        TensorPeer::AnswerBytes(call, "", "of the first").substr(0, 38));
    peer.reset();
    peer = server_.Accept(&token);
    peer->Answer(peer->Receive()->header.call, "", "of the second");
    EXPECT_FALSE(peer->Receive().ok());
  });
  EXPECT_THAT(Pull(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(*Pull(), "of the second");
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I link to /job:ps/task:0: TCP",
                          "I link to /job:ps/task:0: connection lost; the peer "
                          "closed the connection",
                          "I link to /job:ps/task:0: TCP"));
  End(std::move(ps));
  EXPECT_EQ(token, MakeOffer('2').token());
}

// As a channel under TLS looks to a link.
class CertifiedChannel : public ByteChannel {
 public:
  explicit CertifiedChannel(std::unique_ptr<ByteChannel> channel)
      : channel_(std::move(channel)) {}

  int fd() const override { return channel_->fd(); }
  bool is_duplex() const override { return false; }
  absl::StatusOr<bool> Handshake() override { return true; }
  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) override {
    return channel_->Receive(pieces);
  }
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override {
    return channel_->Send(pieces);
  }
  absl::StatusOr<bool> Flush() override { return channel_->Flush(); }
  bool has_received() const override { return false; }
  bool wants_to_send() const override { return false; }
  std::string PeerCertificate() const override { return "a certificate"; }

 private:
  const std::unique_ptr<ByteChannel> channel_;
};

TEST_F(TcpLinkTest, ConnectionWithKeys_IsReplacedInTimeWithoutALoss) {
  options_.open = [](FileDescriptor socket) {
    return std::make_unique<CertifiedChannel>(
        MakePlainChannel(std::move(socket)));
  };
  options_.keyed_age = absl::ZeroDuration();
  Offer({MakeOffer('1'), MakeOffer('2')});
  std::string token;
  std::thread ps([&] {
    std::unique_ptr<TensorPeer> peer = server_.Accept();
    peer->Answer(peer->Receive()->header.call, "", "of the first");
    // It has retired.
    EXPECT_FALSE(peer->Receive().ok());
    peer = server_.Accept(&token);
    peer->Answer(peer->Receive()->header.call, "", "of the second");
    EXPECT_FALSE(peer->Receive().ok());
  });
  EXPECT_EQ(*Pull(), "of the first");
  while (below_.times_asked() < 2) {
    const absl::StatusOr<std::string> values = Pull();
    // A call that comes in the moment of the change is to be made again.
    if (!values.ok()) {
      EXPECT_THAT(values, StatusIs(absl::StatusCode::kUnavailable));
      continue;
    }
    EXPECT_EQ(*values, "of the second");
  }
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I link to /job:ps/task:0: TCP with TLS 1.3"));
  End(std::move(ps));
  EXPECT_EQ(token, MakeOffer('2').token());
}

TEST_F(TcpLinkTest, ItsEnd_AnswersWhatIsOnItsWay) {
  std::atomic<int> answers = 0;
  std::thread ps = Serve(0, "");
  for (int i = 0; i < 20; ++i) {
    link()->Pull({}, Soon(),
                 [&](const absl::StatusOr<Frame<PullReply>>&) { ++answers; });
    if (i == 9) lines_.Await(1);
  }
  End(std::move(ps));
  EXPECT_EQ(answers, 20);
}

TEST_F(TcpLinkTest, ItsEndWhileItConnects_CancelsWhatWaits) {
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 5; ++i) {
    link()->Pull({}, Soon(),
                 [&](const absl::StatusOr<Frame<PullReply>>& reply) {
                   cancelled += absl::IsCancelled(reply.status());
                 });
  }
  // Whom nobody welcomes.
  const FileDescriptor socket = server_.AcceptSocket();
  link_.reset();
  EXPECT_EQ(cancelled, 5);
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(TcpLinkTest, ManyThreadsAndLosses_EachCallIsAnsweredInTheEnd) {
  constexpr int kThreads = 6;
  constexpr int kCalls = 50;
  std::thread ps([&] {
    while (const std::unique_ptr<TensorPeer> peer = server_.Accept()) {
      // Lost after so many.
      for (int i = 0; i < 40; ++i) {
        const absl::StatusOr<ReceivedFrame> frame = peer->Receive();
        if (!frame.ok()) break;
        peer->Answer(frame->header.call, "", "over TCP");
      }
    }
  });
  ASSERT_EQ(*Pull(), "over TCP");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        absl::StatusOr<std::string> values = Pull();
        while (absl::IsUnavailable(values.status())) values = Pull();
        EXPECT_EQ(*values, "over TCP");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  server_.Close();
  End(std::move(ps));
}

}  // namespace
}  // namespace muster
