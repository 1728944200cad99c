#include "tests/benchmark/data_plane/parameter_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/incarnation.h"
#include "common/tensor/aligned_buffer.h"
#include "tests/benchmark/data_plane/rule_blocks.h"
#include "tests/benchmark/data_plane/shards.h"
#include "tests/testing/await_reply.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

constexpr float kGradient = 1e-3f;
constexpr int64_t kEpoch = 1;

// The model: tensors of nearly one size, dealt out to the shards in turn.
struct Model {
  std::vector<TensorDef> tensors;
  Placement placement;
};

Model MakeModel(const WorkloadOptions& options) {
  Model model;
  const int64_t elements = options.bytes / static_cast<int64_t>(sizeof(float));
  for (int i = 0; i < options.tensors; ++i) {
    TensorDef tensor;
    tensor.set_name(absl::StrCat("tensor", i));
    tensor.set_dtype(FLOAT32);
    tensor.add_shape(elements * (i + 1) / options.tensors -
                     elements * i / options.tensors);
    model.tensors.push_back(std::move(tensor));
    model.placement.push_back(
        {TensorExtent{i % options.shards, 0, model.tensors.back().shape(0)}});
  }
  return model;
}

// A value for each element of a model, in one piece of memory as a worker's.
class Values {
 public:
  Values() = default;
  Values(const Model& model, float value) {
    for (const TensorDef& tensor : model.tensors) {
      sizes_.push_back(tensor.shape(0));
      total_ += tensor.shape(0);
    }
    memory_ = AlignedBuffer(static_cast<size_t>(total_) * sizeof(float));
    std::fill_n(memory_.as<float>(), total_, value);
  }

  absl::Span<const float> all() const {
    return {memory_.as<float>(), static_cast<size_t>(total_)};
  }
  std::vector<TensorView> Views() const {
    std::vector<TensorView> views;
    ForEach([&](int64_t offset, int64_t size) {
      views.push_back(ViewOf(all().subspan(offset, size)));
    });
    return views;
  }
  std::vector<MutableTensorView> Into() {
    const absl::Span<float> values(memory_.as<float>(), total_);
    std::vector<MutableTensorView> views;
    ForEach([&](int64_t offset, int64_t size) {
      views.push_back(MutableViewOf(values.subspan(offset, size)));
    });
    return views;
  }

 private:
  // Calls visit(offset, size) for each tensor.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    int64_t offset = 0;
    for (const int64_t size : sizes_) {
      visit(offset, size);
      offset += size;
    }
  }

  std::vector<int64_t> sizes_;
  int64_t total_ = 0;
  AlignedBuffer memory_;
};

// A worker's client and the memory of its parameters and gradients.
class BareWorker {
 public:
  BareWorker(int index, const WorkloadOptions& options, const Codec* codec,
             Shards* shards)
      : num_shards_(options.shards) {
    ParameterClient::Options client;
    client.sender.mutable_task()->set_job("worker");
    client.sender.mutable_task()->set_index(index);
    client.sender.set_incarnation(NewIncarnation());
    client.codec = codec;
    client.pull_codec = codec;
    client.clock = SystemClock();
    if (options.part_bytes > 0) client.max_part_bytes = options.part_bytes;
    if (options.window_parts > 0) {
      client.transfer.window_parts = options.window_parts;
    }
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < num_shards_; ++i) {
      client.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
      links.push_back(shards->Connect(i));
    }
    sender_ = client.sender;
    client_ = std::make_unique<ParameterClient>(client, std::move(links));
  }

  absl::Status SayHello(const Model& model) {
    RETURN_IF_ERROR(client_->SetModel(model.tensors, model.placement));
    gradients_ = Values(model, kGradient);
    parameters_ = Values(model, RuleBlocks::kStart);
    std::vector<uint64_t> incarnations;
    for (int i = 0; i < num_shards_; ++i) {
      ASSIGN_OR_RETURN(
          const HelloReply reply,
          AwaitReply<HelloReply>([&](ReplyCallback<HelloReply> done) {
            client_->Hello(i, HelloTo(sender_), std::move(done));
          }));
      incarnations.push_back(reply.ps_incarnation());
    }
    client_->SetEpoch(kEpoch, incarnations);
    return absl::OkStatus();
  }

  absl::Status LoadModel(const std::string& optimizer,
                         const ReplicationSpec& replication) {
    ModelDefinition definition;
    definition.fingerprint = 1;
    definition.optimizer.set_name(optimizer);
    definition.replication = replication;
    return client_->chief().LoadModel(definition, parameters_.Views());
  }

  absl::Status Push() {
    return client_->PushAndWait(++step_, gradients_.Views()).status();
  }

  absl::Status MapParameters(InPlaceOrder order) {
    ASSIGN_OR_RETURN(in_place_, client_->MapParameters(order));
    return absl::OkStatus();
  }

  absl::Status PullVersions() { return client_->PullVersions().status(); }

  absl::Status Pull(const StepToken& token = {}) {
    return client_->PullAndWait(parameters_.Into(), token);
  }

  // As a training's steps wait for the values of a round.
  absl::Status PullInRound(const StepToken& token) {
    if (in_place_.values.empty()) return Pull(token);
    ASSIGN_OR_RETURN(const auto pull, client_->BeginPullInPlace(token));
    return pull->Finish();
  }

  absl::Status PushInRound(int64_t round) {
    return client_->PushAndWait(++step_, gradients_.Views(), round).status();
  }
  // The next push, as a token names it.
  ChosenStep Next() const {
    ChosenStep chosen;
    *chosen.mutable_sender() = sender_;
    chosen.set_step(step_ + 1);
    return chosen;
  }

  // In one round trip.
  absl::Status PushPull() {
    return client_
        ->PushAndWait(++step_, gradients_.Views(), /*round=*/0,
                      parameters_.Into())
        .status();
  }

  absl::Status Check() const {
    for (const TensorView& view : in_place_.values) {
      const absl::Span<const float> values(
          reinterpret_cast<const float*>(view.data),
          view.size_bytes / sizeof(float));
      RETURN_IF_ERROR(CheckMoved(values, RuleBlocks::kStart));
    }
    return CheckMoved(parameters_.all(), RuleBlocks::kStart);
  }

 private:
  const int num_shards_;
  Sender sender_;
  int64_t step_ = 0;
  Values gradients_;
  Values parameters_;
  ParametersInPlace in_place_;
  // Goes first: it uses the memory above.
  std::unique_ptr<ParameterClient> client_;
};

ReplicationSpec ReplicationOf(StepKind kind) {
  ReplicationSpec replication;
  if (kind == StepKind::kAllReduce) {
    replication.mutable_sync();
  } else if (kind == StepKind::kPushInPlace) {
    replication.mutable_async()->set_pull(IN_PLACE);
  }
  return replication;
}

class ParameterSteps : public Workload {
 public:
  ParameterSteps(const WorkloadOptions& options, StepKind kind,
                 std::unique_ptr<Shards> shards)
      : options_(options), kind_(kind), shards_(std::move(shards)) {}

  // Worker 0 is the chief.
  absl::Status Start() {
    ASSIGN_OR_RETURN(const Codec* const codec, FindCodec(options_.codec));
    const Model model = MakeModel(options_);
    for (int i = 0; i < options_.workers; ++i) {
      workers_.push_back(
          std::make_unique<BareWorker>(i, options_, codec, shards_.get()));
      RETURN_IF_ERROR(workers_[i]->SayHello(model));
    }
    RETURN_IF_ERROR(
        workers_[0]->LoadModel(options_.optimizer, ReplicationOf(kind_)));
    token_.set_round(1);
    for (auto& worker : workers_) {
      RETURN_IF_ERROR(Begin(worker.get()));
    }
    return absl::OkStatus();
  }

  absl::Status Step(int worker) override {
    if (kind_ == StepKind::kAllReduce) return AllReduce();
    if (kind_ == StepKind::kPushAndPull) return workers_[worker]->PushPull();
    return workers_[worker]->Push();
  }

  absl::Status Check() override {
    for (auto& worker : workers_) {
      RETURN_IF_ERROR(worker->Pull());
      RETURN_IF_ERROR(worker->Check());
    }
    return absl::OkStatus();
  }

  int64_t bytes_per_step() const override {
    return options_.bytes *
           (kind_ == StepKind::kPush || kind_ == StepKind::kAllReduce ? 1 : 2);
  }
  std::vector<pid_t> processes() const override { return shards_->processes(); }

 private:
  absl::Status Begin(BareWorker* worker) {
    switch (kind_) {
      case StepKind::kPushInPlace:
        RETURN_IF_ERROR(worker->MapParameters(InPlaceOrder::kNone));
        return worker->PullVersions();
      case StepKind::kAllReduce:
        if (options_.link == "shared_memory") {
          RETURN_IF_ERROR(worker->MapParameters(InPlaceOrder::kByRound));
        }
        return worker->PullInRound(token_);
      default:
        return worker->Pull();
    }
  }

  // One round of all workers, each on a thread of its own: what ps task 0 says
  // of it is known here.
  absl::Status AllReduce() {
    const int64_t round = token_.round();
    absl::Barrier all_pushed(static_cast<int>(workers_.size()));
    token_.set_round(round + 1);
    token_.clear_chosen();
    for (const auto& worker : workers_) *token_.add_chosen() = worker->Next();
    const auto act = [&](BareWorker* worker) {
      const absl::Status pushed = worker->PushInRound(round);
      all_pushed.Block();
      RETURN_IF_ERROR(pushed);
      return worker->PullInRound(token_);
    };
    std::vector<absl::Status> ends(workers_.size());
    std::vector<std::thread> threads;
    for (size_t i = 1; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { ends[i] = act(workers_[i].get()); });
    }
    ends[0] = act(workers_[0].get());
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& end : ends) RETURN_IF_ERROR(end);
    return absl::OkStatus();
  }

  const WorkloadOptions options_;
  const StepKind kind_;
  const std::unique_ptr<Shards> shards_;
  std::vector<std::unique_ptr<BareWorker>> workers_;
  // The next round's, in kAllReduce.
  StepToken token_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeParameterSteps(
    const WorkloadOptions& options, StepKind kind) {
  ASSIGN_OR_RETURN(std::unique_ptr<Shards> shards, StartShards(options));
  auto steps =
      std::make_unique<ParameterSteps>(options, kind, std::move(shards));
  RETURN_IF_ERROR(steps->Start());
  return steps;
}

}  // namespace muster
