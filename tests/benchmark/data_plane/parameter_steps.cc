#include "tests/benchmark/data_plane/parameter_steps.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/rpc/incarnation.h"
#include "tests/benchmark/data_plane/rule_blocks.h"
#include "tests/benchmark/data_plane/shards.h"
#include "tests/testing/await_reply.h"
#include "worker/client/parameter_client.h"
#include "worker/client/tensor_view.h"

namespace muster {
namespace {

constexpr float kGradient = 1e-3f;
constexpr int64_t kEpoch = 1;

// The model: tensors of nearly one size, dealt out to the shards in turn.
struct Model {
  std::vector<TensorDef> tensors;
  std::vector<int> placement;
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
    model.placement.push_back(i % options.shards);
  }
  return model;
}

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
    for (const TensorDef& tensor : model.tensors) {
      gradients_.emplace_back(tensor.shape(0), kGradient);
      parameters_.emplace_back(tensor.shape(0), RuleBlocks::kStart);
    }
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

  absl::Status LoadModel(const std::string& optimizer) {
    ModelDefinition definition;
    definition.fingerprint = 1;
    definition.optimizer.set_name(optimizer);
    definition.replication.mutable_async();
    return client_->LoadModel(definition, Views(parameters_));
  }

  absl::Status Push() {
    return client_->PushAndWait(++step_, Views(gradients_)).status();
  }

  absl::Status Pull() { return client_->PullAndWait(Into()); }

  // In one round trip.
  absl::Status PushPull() {
    return client_->PushAndWait(++step_, Views(gradients_), /*round=*/0, Into())
        .status();
  }

  absl::Status Check() const {
    for (const auto& values : parameters_) {
      RETURN_IF_ERROR(CheckMoved(values, RuleBlocks::kStart));
    }
    return absl::OkStatus();
  }

 private:
  using Values = std::vector<std::vector<float>>;

  static std::vector<TensorView> Views(const Values& all) {
    std::vector<TensorView> views;
    views.reserve(all.size());
    for (const auto& values : all) {
      views.push_back(ViewOf(absl::MakeConstSpan(values)));
    }
    return views;
  }

  std::vector<MutableTensorView> Into() {
    std::vector<MutableTensorView> views;
    views.reserve(parameters_.size());
    for (auto& values : parameters_) {
      views.push_back(MutableViewOf(absl::MakeSpan(values)));
    }
    return views;
  }

  const int num_shards_;
  Sender sender_;
  int64_t step_ = 0;
  Values gradients_;
  Values parameters_;
  // Goes first: it uses the memory above.
  std::unique_ptr<ParameterClient> client_;
};

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
    RETURN_IF_ERROR(workers_[0]->LoadModel(options_.optimizer));
    for (auto& worker : workers_) RETURN_IF_ERROR(worker->Pull());
    return absl::OkStatus();
  }

  absl::Status Step(int worker) override {
    if (kind_ == StepKind::kPush) return workers_[worker]->Push();
    return workers_[worker]->PushPull();
  }

  absl::Status Check() override {
    for (auto& worker : workers_) {
      RETURN_IF_ERROR(worker->Pull());
      RETURN_IF_ERROR(worker->Check());
    }
    return absl::OkStatus();
  }

  int64_t bytes_per_step() const override {
    return options_.bytes * (kind_ == StepKind::kPush ? 1 : 2);
  }
  std::vector<pid_t> processes() const override { return shards_->processes(); }

 private:
  const WorkloadOptions options_;
  const StepKind kind_;
  const std::unique_ptr<Shards> shards_;
  std::vector<std::unique_ptr<BareWorker>> workers_;
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
