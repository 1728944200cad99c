// Somebody who means a ps no good, and a worker beside it:
//
//   hostile_peer PS_HOST:PORT plain MIB   one message of so many MiB
//   hostile_peer PS_HOST:PORT gzip MIB    the same, compressed
//   hostile_peer PS_HOST:PORT idle COUNT [SECONDS]
//                                         so many connections that say nothing
//                                         or, every tenth, a byte now and then,
//                                         for so long (15)
//   hostile_peer PS_HOST:PORT strangers COUNT
//                                         as many Hellos of tasks that it makes
//                                         up, then one of worker 1
//
// While that goes on, the worker pushes. Prints what the hostile one got and
// how the worker fared, as "refused=... pushes=N p99_ms=M"; exits with 1 if a
// push failed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/parameter_service.grpc.pb.h"
#include "worker/client/client.h"

namespace muster {
namespace {

constexpr int64_t kElements = 1 << 16;
constexpr int kMinPushes = 20;
constexpr size_t kSliceBytes = 1 << 20;
constexpr absl::Duration kBombTime = absl::Seconds(60);
constexpr int kIdleSeconds = 15;
// The addresses of workers 0 and 1 where the ps is to list them.
constexpr char kWorkerAddress[] = "localhost:1";
constexpr char kOtherAddress[] = "localhost:2";

// The worker: pushes for as long as `go_on` says, at least kMinPushes times;
// `begin` is called before the first. Returns the milliseconds of each, sorted.
absl::StatusOr<std::vector<double>> PushWhile(
    const std::string& address, const std::string& worker_address,
    const std::function<void()>& begin, const std::function<bool()>& go_on) {
  Client::Options options;
  options.ps_addresses = {address};
  options.worker_address = worker_address;
  options.optimizer.set_name("sgd");
  // The way of the hostile one, not past it through shared memory.
  options.link = LinkChoice::kGrpc;
  ASSIGN_OR_RETURN(const auto model,
                   Client::Connect(options, {{"sums", {kElements}}}));
  std::vector<float> values(kElements);
  RETURN_IF_ERROR(model->Initialize({values}));
  RETURN_IF_ERROR(model->Pull({absl::MakeSpan(values)}));
  begin();
  std::vector<double> push_ms;
  while (push_ms.size() < kMinPushes || go_on()) {
    const absl::Time start = SystemClock()->Now();
    RETURN_IF_ERROR(model->Push({values}).status());
    push_ms.push_back(absl::ToDoubleMilliseconds(SystemClock()->Now() - start));
  }
  std::sort(push_ms.begin(), push_ms.end());
  return push_ms;
}

// The ps' answer to one message of `mib` MiB. Here it is one slice, again and
// again.
absl::Status SendBomb(const std::string& address, int mib, bool compressed) {
  const std::vector<grpc::Slice> slices(
      mib, grpc::Slice(std::string(kSliceBytes, '\0')));
  const grpc::ByteBuffer bomb(slices.data(), slices.size());
  const auto channel =
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  // gRPC compresses before it greets the ps, which waits 10 s for that.
  channel->WaitForConnected(ToGrpcDeadline(SystemClock()->Now() + kBombTime));
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  context.set_deadline(ToGrpcDeadline(SystemClock()->Now() + kBombTime));
  grpc::ByteBuffer reply;
  grpc::Status outcome;
  absl::Notification done;
  stub.UnaryCall(&context, "/muster.ParameterService/Push", grpc::StubOptions(),
                 &bomb, &reply, [&](grpc::Status status) {
                   outcome = std::move(status);
                   done.Notify();
                 });
  done.WaitForNotification();
  return ToAbslStatus(outcome);
}

absl::StatusOr<FileDescriptor> OpenConnection(int port) {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd.valid() ||
      connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  return fd;
}

// Keeps `count` connections open for so long.
absl::Status StayIdle(const std::string& address, int count, int seconds) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) {
    return absl::InvalidArgumentError("no port");
  }
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(FileDescriptor connection, OpenConnection(port));
    connections.push_back(std::move(connection));
  }
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  absl::Notification never;
  for (int i = 0; i < seconds; ++i) {
    for (size_t k = 0; k < connections.size(); k += 10) {
      send(connections[k].get(), &preface[i % preface.size()], 1,
           MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    never.WaitForNotificationWithTimeout(absl::Seconds(1));
  }
  return absl::OkStatus();
}

// Returns the answer of the ps to worker 1, which comes after `count` tasks of
// a job that its cluster does not list.
absl::Status SayHellos(const std::string& address, int count) {
  const auto stub = ParameterService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  HelloRequest request;
  request.set_protocol_version(kProtocolVersion);
  (*request.mutable_ps_addresses())[0] = address;
  request.mutable_sender()->set_incarnation(1);
  request.mutable_sender()->mutable_task()->set_job("stranger");
  grpc::Status outcome;
  for (int i = 0; i <= count; ++i) {
    request.mutable_sender()->mutable_task()->set_index(i);
    if (i == count) {
      *request.mutable_sender()->mutable_task() = MakeTaskId(kWorkerJob, 1);
      request.set_sender_address(kOtherAddress);
    }
    grpc::ClientContext context;
    context.set_deadline(ToGrpcDeadline(SystemClock()->Now() + kBombTime));
    HelloReply reply;
    outcome = stub->Hello(&context, request, &reply);
  }
  return ToAbslStatus(outcome);
}

struct Harm {
  std::string what;
  int number = 0;
  int idle_seconds = kIdleSeconds;
};

absl::Status Do(const Harm& harm, const std::string& address) {
  if (harm.what == "strangers") return SayHellos(address, harm.number);
  return harm.what == "idle"
             ? StayIdle(address, harm.number, harm.idle_seconds)
             : SendBomb(address, harm.number, harm.what == "gzip");
}

// Another process, so that only the ps is between it and the worker. Starts at
// the first byte from `go`, and prints what the ps answered.
[[noreturn]] void BeHostile(int go, const std::string& address,
                            const Harm& harm) {
  char begin = 0;
  if (read(go, &begin, 1) == 1) {
    std::printf("refused=%s\n", Do(harm, address).ToString().c_str());
    std::fflush(stdout);
  }
  _exit(0);
}

absl::Status Run(const std::string& address, const Harm& harm) {
  int go[2];
  if (pipe(go) != 0) return absl::ErrnoToStatus(errno, "pipe");
  // Before gRPC has threads.
  const pid_t hostile = fork();
  if (hostile < 0) return absl::ErrnoToStatus(errno, "fork");
  if (hostile == 0) {
    close(go[1]);
    BeHostile(go[0], address, harm);
  }
  close(go[0]);
  bool ended = false;
  const absl::StatusOr<std::vector<double>> push_ms = PushWhile(
      address, harm.what == "strangers" ? kWorkerAddress : "",
      [&] {
        if (write(go[1], "g", 1) != 1) std::perror("hostile_peer");
      },
      [&] {
        ended = ended || waitpid(hostile, nullptr, WNOHANG) != 0;
        return !ended;
      });
  close(go[1]);
  if (!ended) waitpid(hostile, nullptr, 0);
  RETURN_IF_ERROR(push_ms.status());
  std::printf("pushes=%zu p99_ms=%.1f\n", push_ms->size(),
              (*push_ms)[push_ms->size() * 99 / 100]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  muster::Harm harm{argv[2], std::atoi(argv[3])};
  if (argc == 5) harm.idle_seconds = std::atoi(argv[4]);
  const absl::Status status = muster::Run(argv[1], harm);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
