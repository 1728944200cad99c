#include "tests/benchmark/data_plane/plain_rpc.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tests/benchmark/data_plane/plain_parameters.grpc.pb.h"
#include "tests/benchmark/data_plane/rule_blocks.h"
#include "tests/benchmark/data_plane/server_process.h"

namespace muster {
namespace {

constexpr float kGradient = 1e-3f;
// gRPC's own limit is 4 MiB.
constexpr int kNoLimit = -1;

class PlainService final : public PlainParameters::Service {
 public:
  // `blocks`: null to answer the parameters as they are.
  PlainService(RuleBlocks* blocks, int64_t bytes)
      : blocks_(blocks),
        constant_(blocks == nullptr ? static_cast<size_t>(bytes) : 0, 'x') {}

  grpc::Status PushPull(grpc::ServerContext*, const PlainValues* request,
                        PlainValues* reply) override {
    const std::string& data = request->data();
    if (blocks_ == nullptr) {
      reply->set_data(constant_);
      return grpc::Status::OK;
    }
    const absl::Span<const float> parameter = blocks_->parameter();
    if (data.size() != parameter.size() * sizeof(float)) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "wrong size");
    }
    blocks_->Apply(
        {reinterpret_cast<const float*>(data.data()), parameter.size()});
    reply->set_data(parameter.data(), data.size());
    return grpc::Status::OK;
  }

 private:
  RuleBlocks* const blocks_;
  const std::string constant_;
};

class PlainRpc : public Workload {
 public:
  PlainRpc(std::unique_ptr<ServerProcess> server,
           const WorkloadOptions& options)
      : options_(options),
        server_(std::move(server)),
        gradient_(static_cast<size_t>(options.bytes) / sizeof(float),
                  kGradient),
        parameter_(gradient_.size(), RuleBlocks::kStart) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kNoLimit);
    stub_ = PlainParameters::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }

  absl::Status Step(int) override {
    PlainValues request;
    PlainValues reply;
    const size_t bytes = gradient_.size() * sizeof(float);
    request.set_data(gradient_.data(), bytes);
    grpc::ClientContext context;
    context.set_deadline(ToGrpcDeadline(SystemClock()->Now() +
                                        TransferTimeout(2 * options_.bytes)));
    RETURN_IF_ERROR(ToAbslStatus(stub_->PushPull(&context, request, &reply)));
    if (reply.data().size() != bytes) {
      return absl::InternalError("plain gRPC: the reply has another size");
    }
    std::memcpy(parameter_.data(), reply.data().data(), bytes);
    return absl::OkStatus();
  }

  absl::Status Check() override {
    return CheckMoved(parameter_, RuleBlocks::kStart);
  }

  int64_t bytes_per_step() const override { return 2 * options_.bytes; }
  std::vector<pid_t> processes() const override { return {server_->pid()}; }

 private:
  const WorkloadOptions options_;
  const std::unique_ptr<ServerProcess> server_;
  const std::vector<float> gradient_;
  std::vector<float> parameter_;
  std::unique_ptr<PlainParameters::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakePlainRpc(
    const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<ServerProcess> server,
      ServerProcess::Start(
          {"--serve=plain_rpc", absl::StrCat("--bytes=", options.bytes),
           absl::StrCat("--optimizer=", options.optimizer),
           absl::StrCat("--keep_freed_memory=", options.keep_freed_memory)}));
  return std::make_unique<PlainRpc>(std::move(server), options);
}

absl::Status ServePlainRpc(const WorkloadOptions& options) {
  std::unique_ptr<RuleBlocks> blocks;
  if (!options.optimizer.empty()) {
    ASSIGN_OR_RETURN(blocks,
                     RuleBlocks::Create(
                         options.optimizer,
                         options.bytes / static_cast<int64_t>(sizeof(float))));
  }
  PlainService service(blocks.get(), options.bytes);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetMaxReceiveMessageSize(kNoLimit);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::InternalError("plain gRPC: no port of 127.0.0.1 is free");
  }
  ServeUntilInputEnds(absl::StrCat("127.0.0.1:", port));
  server->Shutdown();
  return absl::OkStatus();
}

}  // namespace muster
