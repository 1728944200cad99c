#ifndef TESTS_WORKER_STEP_TINY_MODEL_H_
#define TESTS_WORKER_STEP_TINY_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "tests/testing/counting_clock.h"
#include "tests/testing/delayed_link.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/worker/model/test_models.h"
#include "worker/backend/backend.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/step/make_exchange.h"
#include "worker/tower/tower_group.h"

namespace muster {

// A slow link to a shard whose parameters lie where the test says. One thread
// at a time calls MapTo or MapParameters.
class TinyLink : public DelayedLink {
 public:
  using DelayedLink::DelayedLink;

  // Null: they cannot be mapped.
  void MapTo(std::shared_ptr<const char> memory) {
    memory_ = std::move(memory);
  }
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override {
    if (memory_ != nullptr) return memory_;
    return DelayedLink::MapParameters(fence, size_bytes);
  }

 private:
  std::shared_ptr<const char> memory_;
};

// One dense layer over the two numbers of a CountingDataSet, its parameters on
// one fake shard: what a step or an evaluation needs, without a cluster.
class TinyModel {
 public:
  TinyModel(int64_t classes, int64_t batch_size, CompileOptions::Mode mode,
            int64_t max_part_bytes = kMaxPartBytes)
      : backend_(MakeBackend("ref")) {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = batch_size;
    options.mode = mode;
    model_ = Compile(
        ParseModel(absl::StrCat(
            "name: 'tiny' input_shape: 2 "
            "layer { name: 'logits' type: 'dense' "
            "        attr { name: 'units' i: ",
            classes,
            " } } layer { name: 'loss' type: 'softmax_cross_entropy' }")),
        options);
    if (mode == CompileOptions::Mode::kTrain) {
      TowerGroup::Options towers;
      towers.towers.push_back({"ref:0", model_.get()});
      towers_ = std::make_unique<TowerGroup>(towers);
    }
    ParameterClient::Options client;
    client.ps_names = {"/job:ps/task:0"};
    client.clock = &clock_;
    client.max_part_bytes = max_part_bytes;
    // A transfer that fails has failed.
    client.transfer.give_up_after = absl::ZeroDuration();
    client.sender.set_incarnation(5);
    std::vector<std::unique_ptr<ParameterLink>> links;
    auto link = std::make_unique<TinyLink>(
        std::make_unique<FakeParameterLink>(&shard_));
    link_ = link.get();
    links.push_back(std::move(link));
    client_ = std::make_unique<ParameterClient>(client, std::move(links));
  }

  // Zero weights and this bias on the shard, in epoch 1.
  absl::Status Load(const std::vector<float>& bias) {
    const absl::Status set = client_->SetModel(
        model_->parameters(), PlaceWhole(model_->parameters(), {0, 0}).value());
    if (!set.ok()) return set;
    client_->SetEpoch(1, {kIncarnation});
    const std::vector<float> weights(2 * bias.size(), 0.0f);
    return client_->chief().LoadModel({}, {ViewOf(absl::MakeConstSpan(weights)),
                                           ViewOf(absl::MakeConstSpan(bias))});
  }

  static constexpr uint64_t kIncarnation = 11;

  const CountingClock* clock() const { return &clock_; }
  FakeShard& shard() { return shard_; }
  // The way to it.
  TinyLink& link() { return *link_; }
  ParameterClient* client() { return client_.get(); }
  CompiledModel* model() { return model_.get(); }
  // One; null in mode kEvaluate.
  TowerGroup* towers() { return towers_.get(); }
  // For steps in mode kTrain; what is left open is as by default.
  ExchangeOptions exchange_options() {
    ExchangeOptions options;
    options.client = client_.get();
    options.towers = towers_.get();
    return options;
  }

 private:
  const CountingClock clock_{};
  FakeShard shard_{FakeShard::Faults()};
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<TowerGroup> towers_;
  TinyLink* link_ = nullptr;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace muster

#endif  // TESTS_WORKER_STEP_TINY_MODEL_H_
