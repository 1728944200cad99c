#ifndef TESTS_WORKER_CLIENT_TWO_SHARD_FIXTURE_H_
#define TESTS_WORKER_CLIENT_TWO_SHARD_FIXTURE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {

// A client of two fake shards.
class TwoShardFixture : public ::testing::Test {
 protected:
  using Values = std::vector<std::vector<float>>;

  TwoShardFixture() {
    options_.clock = &clock_;
    options_.sender.set_incarnation(5);
    options_.transfer.backoff.initial = absl::Milliseconds(1);
    options_.transfer.backoff.max = absl::Milliseconds(4);
    options_.transfer.give_up_after = absl::Seconds(20);
  }

  // The model is "tensor0" to "tensor2", of so many float32, on these shards.
  void Connect(const FakeShard::Faults& faults,
               const std::array<int64_t, 3>& sizes,
               const std::array<int, 3>& placement) {
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < 2; ++i) {
      FakeShard::Faults of_shard = faults;
      of_shard.seed += i;
      shards_.push_back(std::make_unique<FakeShard>(of_shard));
      links.push_back(std::make_unique<FakeParameterLink>(shards_[i].get()));
      options_.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
    }
    tensors_.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      tensors_[i].set_name(absl::StrCat("tensor", i));
      tensors_[i].add_shape(sizes[i]);
      tensors_[i].set_dtype(FLOAT32);
      values_.emplace_back(sizes[i], 0.0f);
      gradients_.emplace_back(sizes[i], 0.0f);
    }
    placement_ = PlaceWhole(tensors_, placement).value();
    Reconnect(std::move(links));
  }

  // Another client, over these links to the same shards.
  void Reconnect(std::vector<std::unique_ptr<ParameterLink>> links) {
    client_ = std::make_unique<ParameterClient>(options_, std::move(links));
    ASSERT_THAT(client_->SetModel(tensors_, placement_), IsOk());
    client_->SetEpoch(1, {11, 12});
  }

  static std::vector<TensorView> Views(const Values& of) {
    std::vector<TensorView> views;
    for (const auto& values : of) {
      views.push_back(ViewOf(absl::MakeConstSpan(values)));
    }
    return views;
  }

  static std::vector<MutableTensorView> Into(Values& of) {
    std::vector<MutableTensorView> views;
    for (auto& values : of) {
      views.push_back(MutableViewOf(absl::MakeSpan(values)));
    }
    return views;
  }

  // Into `values_`.
  absl::Status Pull(int64_t round = 0) {
    StepToken token;
    token.set_round(round);
    return client_->PullAndWait(Into(values_), token);
  }

  const MonotonicClock clock_{};
  ParameterClient::Options options_;  // to be changed before Connect
  std::vector<std::unique_ptr<FakeShard>> shards_;
  Values values_;
  Values gradients_;
  std::vector<TensorDef> tensors_;
  Placement placement_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CLIENT_TWO_SHARD_FIXTURE_H_
