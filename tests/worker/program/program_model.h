#ifndef TESTS_WORKER_PROGRAM_PROGRAM_MODEL_H_
#define TESTS_WORKER_PROGRAM_PROGRAM_MODEL_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "tests/testing/fake_parameter_link.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"

namespace muster {

// The parameters of a program, "w" [2,2] and "mean" [3], and tables, and their
// fake shard, which adds what is pushed.
class ProgramModel {
 public:
  explicit ProgramModel(std::vector<TableDef> tables = {})
      : tables_(std::move(tables)) {
    ParameterClient::Options options;
    // Each tensor is a part.
    options.max_part_bytes = 4;
    options.ps_names = {"/job:ps/task:0"};
    options.clock = SystemClock();
    // A transfer that fails has failed.
    options.transfer.give_up_after = absl::ZeroDuration();
    options.sender.set_incarnation(5);
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<FakeParameterLink>(&shard_));
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
  }

  // Ones in "w" and zeros in "mean" on the shard, in epoch 1.
  absl::Status Load() {
    std::vector<TensorDef> tensors(2);
    for (TensorDef& tensor : tensors) tensor.set_dtype(FLOAT32);
    tensors[0].set_name("w");
    tensors[0].add_shape(2);
    tensors[0].add_shape(2);
    tensors[1].set_name("mean");
    tensors[1].add_shape(3);
    tensors[1].set_kind(STATE);
    const absl::Status set = client_->SetModel(
        tensors, PlaceWhole(tensors, {0, 0}).value(), tables_);
    if (!set.ok()) return set;
    client_->SetEpoch(1, {kIncarnation});
    const std::vector<float> w(4, 1.0f);
    const std::vector<float> mean(3, 0.0f);
    return client_->chief().LoadModel({}, {ViewOf(absl::MakeConstSpan(w)),
                                           ViewOf(absl::MakeConstSpan(mean))});
  }

  static constexpr uint64_t kIncarnation = 11;

  FakeShard& shard() { return shard_; }
  // Pulls of both tensors.
  int64_t pulls() const { return shard_.pulls() / 2; }
  ParameterClient* client() { return client_.get(); }
  // The program's own tensors.
  std::vector<float> w = std::vector<float>(4, -7.0f);
  std::vector<float> mean = std::vector<float>(3, -7.0f);
  std::vector<absl::Span<float>> values() {
    return {absl::MakeSpan(w), absl::MakeSpan(mean)};
  }
  // The shard's.
  std::vector<float> OnShard(const std::string& tensor) {
    const std::string bytes = shard_.values(tensor);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  const std::vector<TableDef> tables_;
  FakeShard shard_{FakeShard::Faults()};
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace muster

#endif  // TESTS_WORKER_PROGRAM_PROGRAM_MODEL_H_
