#ifndef TESTS_WORKER_CTL_NAMESPACE_CLUSTER_H_
#define TESTS_WORKER_CTL_NAMESPACE_CLUSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "common/rpc/protocol.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/coordination_service.grpc.pb.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/ps_task.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"
#include "worker/ctl/verb.h"

namespace muster {

// A ps task that keeps serving, and verbs that speak to it.
class NamespaceCluster : public ::testing::Test {
 protected:
  NamespaceCluster() {
    PsTaskOptions options;
    JobDef* const ps = options.cluster.add_job();
    ps->set_name("ps");
    (*ps->mutable_tasks())[0] = "localhost:1";
    options.bind = "127.0.0.1:0";
    options.incarnation = kPsIncarnation;
    options.keep_serving = true;
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<PsTask>> task =
        PsTask::Start(std::move(options), &latch_);
    EXPECT_THAT(task, IsOk());
    if (task.ok()) task_ = *std::move(task);
    address_ = absl::StrCat("127.0.0.1:", task_->port());
  }

  // A worker that registers in the namespace and has a tensor of 12 bytes.
  void Come(const std::string& space) {
    const auto channel =
        grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
    Sender sender = MakeSender(0, 11);
    sender.set_namespace_(space);
    const auto parameters = ParameterService::NewStub(channel);
    HelloRequest hello = MakeHello(sender);
    (*hello.mutable_ps_addresses())[0] = "localhost:1";
    grpc::ClientContext hello_context;
    HelloReply hello_reply;
    EXPECT_TRUE(parameters->Hello(&hello_context, hello, &hello_reply).ok());
    grpc::ClientContext define_context;
    DefineReply define_reply;
    EXPECT_TRUE(parameters
                    ->Define(&define_context,
                             MakeDefine(sender, {MakeTensor("w", {3})}),
                             &define_reply)
                    .ok());
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    grpc::ClientContext context;
    RegisterReply reply;
    EXPECT_TRUE(CoordinationService::NewStub(channel)
                    ->Register(&context, request, &reply)
                    .ok());
  }

  VerbResult Run(std::vector<std::string> args) {
    args.push_back("--ps_hosts=" + address_);
    return RunVerb(args, nullptr);
  }

  MonotonicClock clock_;
  StopLatch latch_;
  std::unique_ptr<PsTask> task_;
  std::string address_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CTL_NAMESPACE_CLUSTER_H_
