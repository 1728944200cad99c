#include "common/rpc/server/server_listener.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/server/server_settings.h"
#include "common/rpc/tensor_magic.h"
#include "gmock/gmock.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(30);

// While it lives, this process gets no further file descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = dup(0);
    close(lowest_free);
    rlimit now = before_;
    now.rlim_cur = lowest_free;
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// 5,000, or what this process may have beside the rest.
size_t MostIdle() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return std::min<rlim_t>(5000, files.rlim_cur - 500);
}

class ServerListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = ServerListener::Listen("127.0.0.1:0");
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    grpc::ServerBuilder builder;
    buffers_ = ApplyServerSettings({}, &builder);
    builder.RegisterService(&service_);
    listener_->AddTo(&builder, grpc::InsecureServerCredentials(),
                     Protocol::kPlaintext);
    listener_->ServeTensors([this](FileDescriptor connection) {
      absl::MutexLock lock(&mu_);
      tensors_ = std::move(connection);
    });
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    listener_->Start(SystemClock(), said_.reporter());
  }
  void TearDown() override {
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::shared_ptr<grpc::Channel> Connect() const {
    return OpenChannel(absl::StrCat("127.0.0.1:", listener_->port()),
                       grpc::InsecureChannelCredentials());
  }
  // The service knows no method.
  static bool Answers(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    context.set_wait_for_ready(true);
    HelloReply reply;
    return ParameterService::NewStub(channel)
               ->Hello(&context, HelloRequest(), &reply)
               .error_code() == grpc::StatusCode::UNIMPLEMENTED;
  }
  bool ConnectSocket(int socket) const {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<in_port_t>(listener_->port()));
    return connect(socket, reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)) == 0;
  }

  FileDescriptor OpenSocket() const {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_TRUE(ConnectSocket(socket.get())) << strerror(errno);
    return socket;
  }
  std::vector<FileDescriptor> OpenSockets(size_t count) const {
    std::vector<FileDescriptor> sockets;
    while (sockets.size() < count) sockets.push_back(OpenSocket());
    return sockets;
  }
  // What the next connection for tensors begins with.
  std::string AwaitTensors() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](FileDescriptor* tensors) { return tensors->valid(); }, &tensors_));
    char bytes[64];
    const ssize_t size = recv(tensors_.get(), bytes, sizeof(bytes), 0);
    tensors_ = FileDescriptor();
    return std::string(bytes, std::max<ssize_t>(size, 0));
  }

  ParameterService::Service service_;
  std::unique_ptr<BufferQuota> buffers_;
  std::unique_ptr<ServerListener> listener_;
  std::unique_ptr<grpc::Server> server_;
  ReportedLines said_;

  absl::Mutex mu_;
  FileDescriptor tensors_ ABSL_GUARDED_BY(mu_);
};

TEST_F(ServerListenerTest, AMomentWithoutDescriptorsIsOverWhenItIsOver) {
  const auto before = Connect();
  ASSERT_TRUE(Answers(before));
  const FileDescriptor waiting(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoDescriptors none;
    ASSERT_TRUE(ConnectSocket(waiting.get()));
    said_.Await(1);
    EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("Too many open files")));
    EXPECT_TRUE(Answers(before)) << "calls on other connections go on";
  }
  EXPECT_TRUE(Answers(Connect()));
}

TEST_F(ServerListenerTest, ThousandsOfIdleConnections_ShutThePortToNobody) {
  const std::vector<FileDescriptor> idle = OpenSockets(MostIdle() - 100);
  const FileDescriptor tensors = OpenSocket();
  ASSERT_EQ(write(tensors.get(), kTensorMagic.data(), 8), 8);
  const std::vector<FileDescriptor> more = OpenSockets(100);
  EXPECT_TRUE(Answers(Connect()));
  EXPECT_EQ(AwaitTensors(), kTensorMagic);
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("said nothing")));
}

TEST_F(ServerListenerTest, FreesThePort) {
  const std::string address = absl::StrCat("127.0.0.1:", listener_->port());
  const auto connected = Connect();
  ASSERT_TRUE(Answers(connected));
  EXPECT_THAT(ServerListener::Listen(address),
              StatusIs(absl::StatusCode::kUnavailable));
  listener_.reset();
  EXPECT_THAT(ServerListener::Listen(address), IsOk());
  EXPECT_TRUE(Answers(connected)) << "the server has it still";
}

}  // namespace
}  // namespace muster
