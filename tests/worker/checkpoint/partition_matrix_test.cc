// Any partition on any number of ps tasks computes the same bits, and its
// checkpoints load into any other.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/train_dir.h"
#include "common/cluster/placement_strategy.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/session/fake_coordination.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"

namespace muster {
namespace {

constexpr int kWorkers = 2;
constexpr uint64_t kFirstPs = 11;

using Values = std::vector<std::vector<float>>;

struct Split {
  std::string partition;
  int num_ps = 1;

  std::string name() const { return absl::StrCat(partition, "_", num_ps); }
};

std::vector<Split> AllSplits() {
  std::vector<Split> splits;
  for (const char* partition : {"none", "auto", "fixed"}) {
    for (const int num_ps : {1, 2, 3}) splits.push_back({partition, num_ps});
  }
  return splits;
}

TensorDef Def(const std::string& name, int64_t elements, TensorKind kind) {
  TensorDef def;
  def.set_name(name);
  def.add_shape(elements);
  def.set_dtype(FLOAT32);
  def.set_kind(kind);
  return def;
}

std::vector<TensorDef> Tensors() {
  std::vector<TensorDef> tensors = {
      Def("small", 7, TRAINABLE),
      Def("large", 4 * kBlockElements + 5, TRAINABLE),
      Def("average", 2 * kBlockElements + 3, STATE),
      Def("frozen", kBlockElements + 1, FROZEN)};
  tensors[2].set_decay(0.125f);
  return tensors;
}

Placement Place(const Split& split) {
  PlacementSpec spec;
  if (split.partition == "none") spec.mutable_partition()->mutable_none();
  if (split.partition == "fixed") {
    spec.mutable_partition()->mutable_fixed()->set_parts(3);
  }
  return PlaceTensors(Tensors(), split.num_ps, spec).value();
}

Values Zeros() {
  Values values;
  for (const TensorDef& tensor : Tensors()) {
    values.emplace_back(tensor.shape(0));
  }
  return values;
}

// From 0.5 to 1.5; made once, as test code is not optimised.
const Values& RandomValues(int seed) {
  static auto& made = *new std::map<int, Values>;
  const auto [found, is_new] = made.try_emplace(seed);
  if (!is_new) return found->second;
  auto state = static_cast<uint32_t>(seed);
  found->second = Zeros();
  for (std::vector<float>& values : found->second) {
    for (float& value : values) {
      state = state * 1664525 + 1013904223;
      value = 0.5f + static_cast<float>(state >> 8) * 0x1p-24f;
    }
  }
  return found->second;
}

std::vector<TensorView> Views(const Values& values) {
  std::vector<TensorView> views;
  for (const std::vector<float>& value : values) {
    views.push_back(ViewOf(absl::MakeConstSpan(value)));
  }
  return views;
}

std::vector<MutableTensorView> Into(Values* values) {
  std::vector<MutableTensorView> views;
  for (std::vector<float>& value : *values) {
    views.push_back(MutableViewOf(absl::MakeSpan(value)));
  }
  return views;
}

// ps tasks and two workers in this process; worker 0 is the chief.
class Job {
 public:
  Job(const Split& split, const ReplicationSpec& replication,
      const Codec* codec = nullptr) {
    placed_.tensors = Tensors();
    placed_.placement = Place(split);
    placed_.definition.fingerprint = 5;
    placed_.definition.optimizer.set_name("adam");
    placed_.definition.replication = replication;
    for (int i = 0; i < split.num_ps; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = kFirstPs + i;
      shard.shard.ps_index = i;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
      incarnations_.push_back(kFirstPs + i);
    }
    for (int i = 0; i < kWorkers; ++i) Connect(i, codec);
  }

  void Initialize() {
    ++epoch_;
    for (auto& client : clients_) client->SetEpoch(epoch_, incarnations_);
    ASSERT_THAT(clients_[0]->chief().LoadModel(placed_.definition,
                                               Views(RandomValues(1))),
                IsOk());
  }

  // One step of each worker, from values that `token` brings.
  void Step(int64_t step, const StepToken& token = {}) {
    for (int i = 0; i < kWorkers; ++i) {
      Values values = Zeros();
      ASSERT_THAT(clients_[i]->PullAndWait(Into(&values), token), IsOk());
      std::vector<TensorView> gradients =
          Views(RandomValues(static_cast<int>(10 * step + i)));
      gradients[3] = {};  // frozen
      clients_[i]->SettlePush(token);
      ASSERT_THAT(clients_[i]->PushAndWait(step, gradients, token.round()),
                  IsOk());
    }
  }

  Values Pull(const StepToken& token = {}) {
    Values values = Zeros();
    EXPECT_THAT(clients_[0]->PullAndWait(Into(&values), token), IsOk());
    return values;
  }

  // The token of `round`, for which both workers' steps before were chosen.
  StepToken TokenOf(int64_t round) const {
    StepToken token;
    token.set_round(round);
    for (int i = 0; round > 1 && i < kWorkers; ++i) {
      ChosenStep* const chosen = token.add_chosen();
      *chosen->mutable_sender() = SenderOf(i);
      chosen->set_step(round - 1);
    }
    token.set_chosen_step(round - 1);
    return token;
  }

  // The bytes of the files of values.
  std::string Save(FakeFileSystem* files) {
    ModelSaver::Options options;
    options.clock = &clock_;
    options.file_system = files;
    options.train_dir = "train";
    options.client = clients_[0].get();
    options.coordination = &coordination_;
    options.placed = &placed_;
    options.slots = {"m", "v"};
    ModelSaver saver(options);
    saver.Enter(epoch_, absl::ZeroDuration());
    const absl::StatusOr<PendingSave> save = saver.Begin();
    EXPECT_THAT(save, IsOk());
    if (!save.ok()) return "";
    const auto path = save->write();
    EXPECT_THAT(path, IsOk());
    if (!path.ok()) return "";
    return absl::StrCat(
        files->Contents(absl::StrCat(*path, "/", kParametersFile)),
        files->Contents(absl::StrCat(*path, "/", kSlotsFile)));
  }

  void Restore(FakeFileSystem* files) {
    ModelLoader::Options options;
    options.file_system = files;
    options.train_dir = "train";
    options.client = clients_[0].get();
    options.placed = &placed_;
    ModelLoader loader(options);
    ASSERT_THAT(loader.Load({++epoch_, incarnations_}).model, IsOk());
  }

 private:
  static Sender SenderOf(int worker) {
    Sender sender;
    sender.mutable_task()->set_job("worker");
    sender.mutable_task()->set_index(worker);
    sender.set_incarnation(100 + worker);
    return sender;
  }

  void Connect(int worker, const Codec* codec) {
    ParameterClient::Options options;
    options.sender = SenderOf(worker);
    options.clock = &clock_;
    options.codec = codec;
    options.error_feedback = codec != nullptr;
    options.pull_codec = codec;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", links.size()));
      links.push_back(std::make_unique<ForwardingParameterLink>(shard.get()));
    }
    clients_.push_back(
        std::make_unique<ParameterClient>(options, std::move(links)));
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = SenderOf(worker);
    for (int ps = 0; ps < clients_.back()->num_shards(); ++ps) {
      hello.set_ps_index(ps);
      ASSERT_THAT(AwaitReply<HelloReply>([&](ReplyCallback<HelloReply> done) {
                    clients_.back()->Hello(ps, hello, std::move(done));
                  }),
                  IsOk());
    }
    ASSERT_THAT(clients_.back()->SetModel(placed_.tensors, placed_.placement),
                IsOk());
  }

  const MonotonicClock clock_{};
  PlacedModel placed_;
  int64_t epoch_ = 0;
  std::vector<uint64_t> incarnations_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  FakeCoordination coordination_{/*steps=*/0};
  std::vector<std::unique_ptr<ParameterClient>> clients_;
};

ReplicationSpec Async() {
  ReplicationSpec replication;
  replication.mutable_async();
  return replication;
}

TEST(PartitionMatrixTest, EachPartitionRestoresEachOther) {
  struct Saved {
    std::string name;
    std::unique_ptr<FakeFileSystem> files;
    std::string bytes;
  };
  std::vector<Saved> all;
  for (const Split& split : AllSplits()) {
    Saved saved = {split.name(), std::make_unique<FakeFileSystem>("train"), ""};
    Job job(split, Async());
    job.Initialize();
    for (int64_t step = 1; step <= 3; ++step) job.Step(step);
    saved.bytes = job.Save(saved.files.get());
    all.push_back(std::move(saved));
    EXPECT_TRUE(all.back().bytes == all.front().bytes) << all.back().name;
  }
  ASSERT_FALSE(all.front().bytes.empty());
  for (const Split& split : AllSplits()) {
    Job job(split, Async());
    for (const Saved& saved : all) {
      SCOPED_TRACE(absl::StrCat(saved.name, " into ", split.name()));
      job.Restore(saved.files.get());
      FakeFileSystem files("train");
      EXPECT_TRUE(job.Save(&files) == saved.bytes);
    }
  }
}

TEST(PartitionMatrixTest, SynchronousUpdatesHaveTheSameBits) {
  ReplicationSpec sync;
  sync.mutable_sync()->set_replicas_to_aggregate(kWorkers);
  sync.mutable_sync()->set_total_replicas(kWorkers);
  Values wanted;
  for (const Split& split : AllSplits()) {
    Job job(split, sync);
    job.Initialize();
    const Values first = job.Pull();
    for (int64_t step = 1; step <= 3; ++step) job.Step(step, job.TokenOf(step));
    const Values values = job.Pull(job.TokenOf(4));
    if (wanted.empty()) wanted = values;
    EXPECT_TRUE(values == wanted) << split.name();
    EXPECT_FALSE(values == first);
  }
}

TEST(PartitionMatrixTest, CodecsWithErrorFeedbackHaveTheSameBits) {
  Values wanted;
  for (const Split& split : AllSplits()) {
    Job job(split, Async(), FindCodec("bf16").value());
    job.Initialize();
    for (int64_t step = 1; step <= 3; ++step) job.Step(step);
    const Values values = job.Pull();
    if (wanted.empty()) wanted = values;
    EXPECT_TRUE(values == wanted) << split.name();
  }
}

}  // namespace
}  // namespace muster
