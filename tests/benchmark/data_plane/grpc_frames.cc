#include "tests/benchmark/data_plane/grpc_frames.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/protocol.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "tests/benchmark/data_plane/server_process.h"
#include "tests/worker/client/link/frame_server.h"
#include "worker/client/link/unary_caller.h"

namespace muster {
namespace {

constexpr char kMethod[] = "/muster.Benchmark/Echo";
// As TransferWindow::kWindowParts.
constexpr int kWindowParts = 4;

// The parts of one step on their way there and back.
class RoundTrip {
 public:
  RoundTrip(UnaryCaller* caller, const std::string& from, std::string* into)
      : caller_(caller),
        from_(from),
        into_(into),
        left_(static_cast<int>((from.size() + kMaxPartBytes - 1) /
                               kMaxPartBytes)) {}

  // Returns when every part is back.
  absl::Status Run() {
    for (int i = 0; i < kWindowParts; ++i) SendNext();
    left_.Wait();
    absl::MutexLock lock(&mu_);
    return status_;
  }

 private:
  void SendNext() {
    size_t offset;
    {
      absl::MutexLock lock(&mu_);
      if (next_ >= from_.size()) return;
      offset = std::exchange(next_, next_ + kMaxPartBytes);
    }
    const size_t size =
        std::min(from_.size() - offset, static_cast<size_t>(kMaxPartBytes));
    const grpc::Slice slice(from_.data() + offset, size,
                            grpc::Slice::STATIC_SLICE);
    caller_->Call(kMethod, grpc::ByteBuffer(&slice, 1),
                  SystemClock()->Now() +
                      TransferTimeout(static_cast<int64_t>(from_.size())),
                  [this, offset, size](absl::StatusOr<grpc::ByteBuffer> back) {
                    OnBack(offset, size, std::move(back));
                  });
  }

  void OnBack(size_t offset, size_t size,
              absl::StatusOr<grpc::ByteBuffer> back) {
    if (back.ok() && back->Length() != size) {
      back = absl::InternalError("a part came back with another size");
    }
    if (back.ok()) {
      Land(*back, into_->data() + offset);
    } else {
      absl::MutexLock lock(&mu_);
      status_.Update(back.status());
    }
    SendNext();
    left_.DecrementCount();
  }

  static void Land(const grpc::ByteBuffer& bytes, char* dst) {
    std::vector<grpc::Slice> slices;
    if (!bytes.Dump(&slices).ok()) return;
    for (const grpc::Slice& slice : slices) {
      std::memcpy(dst, slice.begin(), slice.size());
      dst += slice.size();
    }
  }

  UnaryCaller* const caller_;
  const std::string& from_;
  std::string* const into_;
  absl::BlockingCounter left_;
  absl::Mutex mu_;
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

class GrpcFrames : public Workload {
 public:
  GrpcFrames(std::unique_ptr<ServerProcess> server, int64_t bytes)
      : server_(std::move(server)),
        gradient_(static_cast<size_t>(bytes), 'x'),
        parameter_(gradient_.size(), ' '),
        caller_({"the frame server", server_->address()},
                PeerChannel::Opener(server_->address(),
                                    grpc::InsecureChannelCredentials())) {}

  absl::Status Step(int) override {
    return RoundTrip(&caller_, gradient_, &parameter_).Run();
  }

  absl::Status Check() override {
    if (parameter_ == gradient_) return absl::OkStatus();
    return absl::InternalError("gRPC frames: what came back differs");
  }

  int64_t bytes_per_step() const override {
    return 2 * static_cast<int64_t>(gradient_.size());
  }
  std::vector<pid_t> processes() const override { return {server_->pid()}; }

 private:
  const std::unique_ptr<ServerProcess> server_;
  const std::string gradient_;
  std::string parameter_;
  // Goes first: nothing refers to the memory above any more.
  UnaryCaller caller_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeGrpcFrames(
    const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ServerProcess> server,
                   ServerProcess::Start({"--serve=grpc_frames"}));
  return std::make_unique<GrpcFrames>(std::move(server), options.bytes);
}

absl::Status ServeGrpcFrames() {
  const FrameServer server(
      [](const std::string&,
         const grpc::ByteBuffer& request) -> absl::StatusOr<grpc::ByteBuffer> {
        return request;
      });
  ServeUntilInputEnds(server.address());
  return absl::OkStatus();
}

}  // namespace muster
