#ifndef TESTS_WORKER_CTL_RUNNING_JOB_H_
#define TESTS_WORKER_CTL_RUNNING_JOB_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/rpc/protocol.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/coordination_service.grpc.pb.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {

// A job of a chief that saves and a worker, RUNNING on a ps task, and the verbs
// that steer it. The test plays the tasks.
class RunningJob : public NamespaceCluster {
 protected:
  RunningJob() {
    stub_ = CoordinationService::NewStub(
        grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    Register(chief_);
    Register(worker_);
  }
  ~RunningJob() override {
    if (player_.joinable()) player_.join();
  }

  void Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    Call(&CoordinationService::Stub::Register, request, RegisterReply());
  }

  void Commit() {
    BeginEpochRequest begin;
    *begin.mutable_sender() = chief_;
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(
        Call(&CoordinationService::Stub::BeginEpoch, begin, BeginEpochReply())
            .model_epoch());
    commit.set_batch_size(10);
    commit.set_saves(true);
    commit.mutable_stop()->set_steps(1000);
    (*commit.mutable_ps_incarnations())[0] = kPsIncarnation;
    Call(&CoordinationService::Stub::CommitEpoch, commit, CommitEpochReply());
  }

  // Calls `play` on a thread of its own once the chief is told of a state for
  // which `is_it` holds.
  void Play(std::function<bool(const JobState&)> is_it,
            std::function<void(const JobState&)> play) {
    player_ =
        std::thread([this, is_it = std::move(is_it), play = std::move(play)] {
          WatchRequest watch;
          *watch.mutable_sender() = chief_;
          watch.set_max_wait_ms(5000);
          while (true) {
            const JobState state =
                Call(&CoordinationService::Stub::Watch, watch, JobState());
            if (testing::Test::HasFailure()) return;
            if (is_it(state)) return play(state);
            watch.set_state_version(state.state_version());
          }
        });
  }

  void Finish(const Sender& sender) {
    FinishRequest finish;
    *finish.mutable_sender() = sender;
    finish.set_reason("done");
    Call(&CoordinationService::Stub::Finish, finish, FinishReply());
  }

  // The reply; a call that fails fails the test.
  template <typename Method, typename Request, typename Reply>
  Reply Call(Method method, const Request& request, Reply reply) {
    grpc::ClientContext context;
    const grpc::Status status = (*stub_.*method)(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);

 private:
  std::unique_ptr<CoordinationService::Stub> stub_;
  std::thread player_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CTL_RUNNING_JOB_H_
