#include "common/tls/task_keys.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/connection_cause.h"
#include "common/rpc/server/server_listener.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns when there is a line with all of `texts`.
void AwaitLine(const ReportedLines& said,
               const std::vector<std::string>& texts) {
  for (size_t i = 0;; ++i) {
    said.Await(i + 1);
    const std::string line = said.lines()[i];
    if (absl::c_all_of(texts, [&](const std::string& text) {
          return absl::StrContains(line, text);
        })) {
      return;
    }
  }
}

std::unique_ptr<Certificates> MakeCertificates() {
  absl::StatusOr<std::unique_ptr<Certificates>> made = Certificates::Make();
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

// A server of ps 0 without a service of its own, and channels to it. What
// reaches it is answered with Unimplemented.
class TaskKeysTest : public testing::Test {
 protected:
  TaskKeysTest() : keys_(KeysOf("ps", 0, *own_, &server_said_)) {
    Listen(keys_->credentials());
  }
  ~TaskKeysTest() override { Stop(); }

  void Listen(const TaskCredentials& credentials) {
    grpc::ServerBuilder builder;
    listener_ = *ServerListener::Listen("127.0.0.1:0");
    listener_->AddTo(
        &builder, credentials.server,
        credentials.proves_callers ? Protocol::kTls : Protocol::kPlaintext);
    // After the server that had the last one.
    service_ = std::make_unique<grpc::CallbackGenericService>();
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    listener_->Start(SystemClock(), server_said_.reporter());
  }
  void Stop() {
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  std::unique_ptr<TaskKeys> KeysOf(const std::string& job, int index,
                                   const Certificates& certificates,
                                   ReportedLines* said) {
    TaskKeys::Options options;
    options.dir = certificates.folder();
    options.job = job;
    options.index = index;
    options.reporter = said->reporter();
    options.clock = SystemClock();
    options.look_every = absl::Milliseconds(5);
    options.wall_time = [this] {
      return absl::Now() + absl::Hours(hours_.load());
    };
    auto keys = TaskKeys::Create(std::move(options));
    EXPECT_THAT(keys, IsOk());
    return *std::move(keys);
  }

  std::shared_ptr<grpc::Channel> Open(const TaskCredentials& credentials,
                                      int ps = 0) {
    return OpenChannel(absl::StrCat("127.0.0.1:", listener_->port()),
                       credentials.channel_to("ps", ps));
  }
  // The error of a call; "" if it reached the server.
  std::string Call(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    const grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
    grpc::CompletionQueue queue;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, "/a/b", request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code() == grpc::StatusCode::UNIMPLEMENTED
               ? ""
               : status.error_message();
  }
  std::string CallAsWorker(const Certificates& certificates, int ps = 0) {
    const auto keys = KeysOf("worker", 1, certificates, &client_said_);
    return Call(Open(keys->credentials(), ps));
  }

  // A worker's connection without gRPC to the server's task, which it takes for
  // this ps, as far as the handshake goes.
  std::pair<std::unique_ptr<ByteChannel>, std::unique_ptr<ByteChannel>> Connect(
      const TaskKeys& worker, int ps = 0) {
    int fds[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    auto dialer =
        *worker.credentials().dial_over(FileDescriptor(fds[0]), "ps", ps);
    auto accepter = *keys_->credentials().accept_over(FileDescriptor(fds[1]));
    for (int i = 0; i < 3; ++i) {
      dialer->Handshake().IgnoreError();
      accepter->Handshake().IgnoreError();
    }
    return {std::move(dialer), std::move(accepter)};
  }

  // The time by which the clocks of all are ahead.
  std::atomic<int> hours_ = 0;
  const std::unique_ptr<Certificates> own_ = MakeCertificates();
  ReportedLines server_said_;
  ReportedLines client_said_;
  std::unique_ptr<TaskKeys> keys_;
  std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerListener> listener_;
};

TEST_F(TaskKeysTest, ATaskOfTheClusterIsLetIn) {
  EXPECT_EQ(CallAsWorker(*own_), "");
  EXPECT_THAT(server_said_.lines(),
              Contains(AllOf(HasSubstr("/job:ps/task:0 of cluster 'muster'"),
                             HasSubstr("until 20"))));
}

TEST_F(TaskKeysTest, AnotherAuthorityIsRefusedByBothWithTheReason) {
  const auto other = MakeCertificates();
  EXPECT_THAT(CallAsWorker(*other), HasSubstr("is of another authority"));
  EXPECT_THAT(client_said_.lines(),
              Contains(AllOf(HasSubstr("refused a server: its certificate "
                                       "CN=ps-0"),
                             HasSubstr("another authority"))));
  AwaitLine(server_said_, {"refused a client: its certificate CN=worker-1",
                           "another authority"});
}

TEST_F(TaskKeysTest, AnotherTaskThanTheOneThatWasDialledIsRefused) {
  EXPECT_THAT(CallAsWorker(*own_, /*ps=*/1),
              AllOf(HasSubstr("is of /job:ps/task:0"),
                    HasSubstr("wanted that of /job:ps/task:1")));
}

TEST_F(TaskKeysTest, ACertificateThatHasEndedIsRefusedWithTheReason) {
  const auto worker = KeysOf("worker", 1, *own_, &client_said_);
  hours_ = 25;
  EXPECT_THAT(Call(Open(worker->credentials())), HasSubstr("ended on"));
  AwaitLine(server_said_, {"refused a client", "CN=worker-1", "ended on"});
}

TEST_F(TaskKeysTest, ACertificateThatHasNotBegunIsRefusedWithTheReason) {
  const auto worker = KeysOf("worker", 1, *own_, &client_said_);
  hours_ = -25;
  EXPECT_THAT(Call(Open(worker->credentials())), HasSubstr("begins only on"));
  AwaitLine(server_said_,
            {"refused a client", "CN=worker-1", "begins only on"});
}

TEST_F(TaskKeysTest, PlaintextIsRefusedEitherWay) {
  EXPECT_THAT(ConnectionCause(Call(Open(InsecureCredentials()))),
              HasSubstr("the peer speaks TLS alone, and this task does not"));
  AwaitLine(server_said_, {"refused a client: it speaks no TLS"});
  Stop();
  Listen(InsecureCredentials());
  EXPECT_THAT(ConnectionCause(CallAsWorker(*own_)),
              HasSubstr("the peer speaks no TLS, and this task does"));
  AwaitLine(server_said_, {"refused a client: it speaks TLS"});
}

TEST_F(TaskKeysTest, NewCertificatesAreTakenAndConnectionsStay) {
  const auto worker = KeysOf("worker", 1, *own_, &client_said_);
  const auto channel = Open(worker->credentials());
  ASSERT_EQ(Call(channel), "");
  ASSERT_THAT(own_->Issue("worker-1"), IsOk());
  AwaitLine(client_said_,
            {"I TLS: new certificates: CN=worker-1", "goes", "comes"});
  EXPECT_EQ(channel->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_READY);
  EXPECT_EQ(Call(channel), "");
  EXPECT_EQ(Call(Open(worker->credentials())), "");
}

TEST_F(TaskKeysTest, ChannelsWithoutGrpc_ProveBothEnds) {
  const auto worker = KeysOf("worker", 1, *own_, &client_said_);
  const auto [dialer, accepter] = Connect(*worker, /*ps=*/0);
  EXPECT_EQ(dialer->PeerCertificate(), own_->Read("ps-0.pem"));
  EXPECT_EQ(accepter->PeerCertificate(), own_->Read("worker-1.pem"));
  const auto [other_dialer, other_accepter] = Connect(*worker, /*ps=*/1);
  EXPECT_THAT(other_dialer->Handshake(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("wanted that of /job:ps/task:1")));
  EXPECT_EQ(other_dialer->PeerCertificate(), "");
}

TEST_F(TaskKeysTest, NewCertificates_AreShownByNewChannelsAlone) {
  const auto worker = KeysOf("worker", 1, *own_, &client_said_);
  const auto [dialer, accepter] = Connect(*worker);
  const std::string old = own_->Read("ps-0.pem");
  ASSERT_THAT(own_->Issue("ps-0"), IsOk());
  AwaitLine(server_said_, {"I TLS: new certificates: CN=ps-0"});
  const auto [new_dialer, new_accepter] = Connect(*worker);
  EXPECT_EQ(new_dialer->PeerCertificate(), own_->Read("ps-0.pem"));
  EXPECT_EQ(dialer->PeerCertificate(), old);
  std::string bytes = "x";
  const iovec piece = {bytes.data(), bytes.size()};
  ASSERT_THAT(accepter->Send({&piece, 1}), IsOkAndHolds(1));
  ASSERT_THAT(accepter->Flush(), IsOkAndHolds(true));
  EXPECT_THAT(dialer->Receive({&piece, 1}), IsOkAndHolds(1));
}

TEST_F(TaskKeysTest, AHalfWrittenPairIsSaidAndNotTaken) {
  const std::string key = own_->Read("ps-0.key");
  ASSERT_THAT(own_->Issue("ps-0"), IsOk());
  const std::string new_key = own_->Read("ps-0.key");
  ASSERT_THAT(own_->Write("ps-0.key", key), IsOk());
  AwaitLine(server_said_, {"is not taken", "ps-0.key: the key is that of"});
  EXPECT_EQ(CallAsWorker(*own_), "");
  ASSERT_THAT(own_->Write("ps-0.key", new_key), IsOk());
  AwaitLine(server_said_, {"I TLS: new certificates: CN=ps-0"});
  EXPECT_EQ(CallAsWorker(*own_), "");
}

TEST_F(TaskKeysTest, AKeyThatEverybodyMayReadIsSaid) {
  const std::string key = absl::StrCat(own_->folder(), "/worker-1.key");
  ReportedLines said;
  const auto line = HasSubstr("W TLS: everybody on this machine may read ");
  for (const mode_t mode : {0600, 0440, 0640}) {
    ASSERT_EQ(chmod(key.c_str(), mode), 0);
    KeysOf("worker", 1, *own_, &said);
    EXPECT_THAT(said.lines(), Not(Contains(line))) << mode;
  }
  ASSERT_EQ(chmod(key.c_str(), 0644), 0);
  const auto worker = KeysOf("worker", 1, *own_, &said);
  EXPECT_THAT(said.lines(), Contains(AllOf(line, HasSubstr(key))));
  EXPECT_EQ(Call(Open(worker->credentials())), "");
}

TEST_F(TaskKeysTest, AFolderThatPeersWouldRefuseIsAnError) {
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.not_after = absl::Now() - absl::Hours(1);
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  EXPECT_THAT(KeysOfTask(own_->folder(), MakeTaskId("worker", 1), Reporter(),
                         SystemClock()),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("--certs_dir="), HasSubstr("ended"))));
  const auto none =
      KeysOfTask("", MakeTaskId("worker", 1), Reporter(), SystemClock());
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace muster
