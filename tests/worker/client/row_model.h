#ifndef TESTS_WORKER_CLIENT_ROW_MODEL_H_
#define TESTS_WORKER_CLIENT_ROW_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/tensor/row_hash.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {

inline TableDef MakeTable(const std::string& name, int64_t dim) {
  TableDef table;
  table.set_name(name);
  table.set_dim(dim);
  return table;
}

// Keeps the headers of the pushes that went over it, each attempt's.
class RecordingLink : public ForwardingParameterLink {
 public:
  explicit RecordingLink(ParameterLink* link) : ForwardingParameterLink(link) {}

  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    {
      absl::MutexLock lock(&mu_);
      pushes_.push_back(request.header);
    }
    ForwardingParameterLink::PushTo(std::move(place), std::move(request),
                                    deadline, std::move(done));
  }
  std::vector<PushPart> pushes() const {
    absl::MutexLock lock(&mu_);
    return pushes_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<PushPart> pushes_ ABSL_GUARDED_BY(mu_);
};

// A model on fake shards: a tensor "w" [4] on ps task 0, and the tables "user",
// rows of 3, and "item", rows of 2.
class RowModel : public ::testing::Test {
 protected:
  enum { kUser, kItem };

  RowModel() {
    options_.clock = &clock_;
    options_.sender.set_incarnation(5);
    options_.transfer.backoff.initial = absl::Milliseconds(1);
    options_.transfer.backoff.max = absl::Milliseconds(4);
    options_.transfer.give_up_after = absl::Seconds(20);
    // A part has two rows of "user".
    options_.max_part_bytes = 2 * (8 + 3 * 4);
    tensors_.resize(1);
    tensors_[0].set_name("w");
    tensors_[0].add_shape(4);
    tensors_[0].set_dtype(FLOAT32);
  }

  void Connect(int num_ps, const FakeShard::Faults& faults = {}) {
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int ps = 0; ps < num_ps; ++ps) {
      FakeShard::Faults of_shard = faults;
      of_shard.seed += ps;
      shards_.push_back(std::make_unique<FakeShard>(of_shard));
      fakes_.push_back(std::make_unique<FakeParameterLink>(shards_[ps].get()));
      auto link = std::make_unique<RecordingLink>(fakes_[ps].get());
      links_.push_back(link.get());
      links.push_back(std::move(link));
      options_.ps_names.push_back(absl::StrCat("/job:ps/task:", ps));
      incarnations_.push_back(11 + ps);
    }
    client_ = std::make_unique<ParameterClient>(options_, std::move(links));
    ASSERT_THAT(
        client_->SetModel(tensors_, PlaceWhole(tensors_, {0}).value(), tables_),
        IsOk());
    client_->SetEpoch(1, incarnations_);
    ASSERT_THAT(client_->chief().LoadModel({}, {View(w_)}), IsOk());
    ASSERT_THAT(PullTensor(), IsOk());
  }

  static TensorView View(const std::vector<float>& values) {
    return ViewOf(absl::MakeConstSpan(values));
  }
  absl::Status PullTensor() {
    return client_->PullAndWait({MutableViewOf(absl::MakeSpan(w_))});
  }
  int PsOf(int table, int64_t id) const {
    return PsOfLogicalShard(RowHash(tables_[table].name()).LogicalShardOf(id),
                            static_cast<int>(shards_.size()));
  }
  // `count` ids of a table on this ps task, from 0 up.
  std::vector<int64_t> IdsOn(int table, int ps, size_t count) const {
    std::vector<int64_t> ids;
    for (int64_t id = 0; ids.size() < count; ++id) {
      if (PsOf(table, id) == ps) ids.push_back(id);
    }
    return ids;
  }
  // The row where it belongs; empty if it is not there.
  std::vector<float> RowOnShard(int table, int64_t id) const {
    return shards_[PsOf(table, id)]->row(tables_[table].name(), id);
  }

  const MonotonicClock clock_{};
  ParameterClient::Options options_;  // to be changed before Connect
  std::vector<TensorDef> tensors_;
  std::vector<TableDef> tables_ = {MakeTable("user", 3), MakeTable("item", 2)};
  std::vector<std::unique_ptr<FakeShard>> shards_;
  std::vector<std::unique_ptr<FakeParameterLink>> fakes_;
  std::vector<RecordingLink*> links_;
  std::vector<uint64_t> incarnations_;
  std::vector<float> w_ = std::vector<float>(4, 0.0f);
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CLIENT_ROW_MODEL_H_
