// Rows of tables on any number of ps tasks: the same bits in the same
// checkpoints, which load onto any other number.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/train_dir.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/session/fake_coordination.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kFirstPs = 11;
constexpr int64_t kDim = 3;

std::vector<TableDef> Tables() {
  std::vector<TableDef> tables = {MakeTable("user", kDim, "adam"),
                                  MakeTable("item", kDim, "adagrad")};
  for (TableDef& table : tables) table.set_scale(0.5f);
  return tables;
}

// ps tasks and one worker, the chief, in this process.
class Job {
 public:
  explicit Job(int num_ps, std::vector<TableDef> tables = Tables()) {
    placed_.tensors = {MakeTensor("w", {4})};
    placed_.placement = {{{0, 0, 4}}};
    placed_.tables = std::move(tables);
    placed_.definition.fingerprint = 5;
    placed_.definition.optimizer.set_name("adam");
    placed_.definition.replication.mutable_async();
    ParameterClient::Options options;
    options.sender.set_incarnation(100);
    options.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < num_ps; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = kFirstPs + i;
      shard.shard.ps_index = i;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
      incarnations_.push_back(kFirstPs + i);
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
      links.push_back(
          std::make_unique<ForwardingParameterLink>(shards_.back().get()));
    }
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    SayHello();
    EXPECT_THAT(
        client_->SetModel(placed_.tensors, placed_.placement, placed_.tables),
        IsOk());
  }

  // The loader's way to a model, by the newest checkpoint if there is one.
  LoadEvent Load(FakeFileSystem* files,
                 const InitialWeights* weights = nullptr) {
    ModelLoader::Options options;
    options.file_system = files;
    options.train_dir = "train";
    options.client = client_.get();
    options.placed = &placed_;
    options.weights = weights;
    options.make_values = [this] {
      return std::vector<absl::Span<float>>{absl::MakeSpan(values_)};
    };
    return ModelLoader(options).Load({++epoch_, incarnations_});
  }

  // Pushes a gradient that depends on `step` to rows of both tables.
  void Step(int64_t step) {
    std::vector<float> w(4);
    ASSERT_THAT(client_->PullAndWait({MutableViewOf(absl::MakeSpan(w))}),
                IsOk());
    std::vector<int64_t> ids;
    std::vector<float> gradients;
    for (int64_t i = 0; i < 40; ++i) {
      ids.push_back((i * 7919 + step * 31) % 97 - 48);
      for (int64_t k = 0; k < kDim; ++k) {
        gradients.push_back(static_cast<float>(i + k - step) / 8);
      }
    }
    const std::vector<RowGradients> rows = {{0, ids, gradients},
                                            {1, ids, gradients}};
    RowPush push;
    push.rows = rows;
    ASSERT_THAT(client_->PushAndWait(step, {ViewOf(absl::MakeConstSpan(w))}, 0,
                                     {}, push),
                IsOk());
  }

  std::vector<float> Rows(int table, const std::vector<int64_t>& ids) {
    std::vector<float> values(ids.size() * kDim);
    EXPECT_THAT(client_->PullRows({{table, ids, absl::MakeSpan(values)}}),
                IsOk());
    return values;
  }

  // The bytes of the rows' file.
  std::string Save(FakeFileSystem* files) {
    ModelSaver::Options options;
    options.clock = &clock_;
    options.file_system = files;
    options.train_dir = "train";
    options.client = client_.get();
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
    return files->Contents(absl::StrCat(*path, "/", kTablesFile));
  }

 private:
  void SayHello() {
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.mutable_sender()->set_incarnation(100);
    for (int ps = 0; ps < client_->num_shards(); ++ps) {
      hello.set_ps_index(ps);
      ASSERT_THAT(AwaitReply<HelloReply>([&](ReplyCallback<HelloReply> done) {
                    client_->Hello(ps, hello, std::move(done));
                  }),
                  IsOk());
    }
  }

  const MonotonicClock clock_{};
  PlacedModel placed_;
  int64_t epoch_ = 0;
  std::vector<float> values_ = {1, 2, 3, 4};
  std::vector<uint64_t> incarnations_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  FakeCoordination coordination_{/*steps=*/0};
  std::unique_ptr<ParameterClient> client_;
};

TEST(TableMatrixTest, EachNumberOfPsTasks_RestoresWhatEachOtherHasSaved) {
  std::map<int, std::unique_ptr<FakeFileSystem>> saved;
  std::string wanted;
  for (const int num_ps : {1, 2, 3}) {
    saved[num_ps] = std::make_unique<FakeFileSystem>("train");
    Job job(num_ps);
    ASSERT_THAT(job.Load(saved[num_ps].get()).model, IsOk());
    for (int64_t step = 1; step <= 3; ++step) job.Step(step);
    const std::string bytes = job.Save(saved[num_ps].get());
    if (wanted.empty()) wanted = bytes;
    EXPECT_TRUE(bytes == wanted) << num_ps;
  }
  ASSERT_GT(wanted.size(), 5000);
  for (const int num_ps : {1, 2, 3}) {
    for (const auto& [from, files] : saved) {
      Job job(num_ps);
      ASSERT_THAT(job.Load(files.get()).model, IsOk());
      FakeFileSystem again("train");
      EXPECT_TRUE(job.Save(&again) == wanted) << from << " into " << num_ps;
    }
  }
}

TEST(TableMatrixTest, ARestoredRun_GoesOnWithTheSameBits) {
  FakeFileSystem files("train");
  Job straight(2);
  ASSERT_THAT(straight.Load(&files).model, IsOk());
  straight.Step(1);
  ASSERT_NE(straight.Save(&files), "");
  Job restored(3);
  ASSERT_THAT(restored.Load(&files).model, IsOk());
  for (Job* const job : {&straight, &restored}) job->Step(2);
  const std::vector<int64_t> ids = {-48, -7, 0, 12, 48, 1000};
  EXPECT_EQ(restored.Rows(0, ids), straight.Rows(0, ids));
  EXPECT_EQ(restored.Rows(1, ids), straight.Rows(1, ids));
}

TEST(TableMatrixTest, AnotherTable_IsNamedAndTheCheckpointStays) {
  FakeFileSystem files("train");
  Job job(1);
  ASSERT_THAT(job.Load(&files).model, IsOk());
  job.Step(1);
  const std::string bytes = job.Save(&files);
  std::vector<TableDef> renamed = Tables();
  renamed[1].set_name("product");
  std::vector<TableDef> wider = Tables();
  wider[1].set_dim(kDim + 1);
  std::vector<TableDef> other_rule = Tables();
  other_rule[1].mutable_optimizer()->set_name("ftrl");
  const std::vector<std::pair<std::vector<TableDef>, std::string>> cases = {
      {renamed, "table 'product'"},
      {wider, "rows of 4"},
      {other_rule, "rule 'ftrl'"}};
  for (const auto& [tables, says] : cases) {
    const LoadEvent event = Job(1, tables).Load(&files);
    EXPECT_THAT(event.model, StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("restore train/ckpt-"),
                                            HasSubstr(says))));
    EXPECT_TRUE(event.checkpoint_unusable);
  }
  Job again(1);
  ASSERT_THAT(again.Load(&files).model, IsOk());
  FakeFileSystem other("train");
  EXPECT_TRUE(again.Save(&other) == bytes);
}

TEST(TableMatrixTest, GivenRows_BeginWithTheirValues) {
  FakeFileSystem files("train");
  Job job(2);
  ASSERT_THAT(job.Load(&files).model, IsOk());
  for (int64_t step = 1; step <= 2; ++step) job.Step(step);
  ASSERT_NE(job.Save(&files), "");
  InitialWeights::Options options;
  options.path = "train";
  options.tables = Tables();
  const auto weights =
      InitialWeights::Open(&files, options, {MakeTensor("w", {4})});
  ASSERT_THAT(weights, IsOk());
  FakeFileSystem fresh("train");
  Job given(3);
  ASSERT_THAT(given.Load(&fresh, weights->get()).model, IsOk());
  const std::vector<int64_t> ids = {-48, -7, 0, 12, 48, 1000};
  EXPECT_EQ(given.Rows(0, ids), job.Rows(0, ids));
  EXPECT_EQ(given.Rows(1, ids), job.Rows(1, ids));
}

}  // namespace
}  // namespace muster
