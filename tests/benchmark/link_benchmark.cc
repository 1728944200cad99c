// One pull and one push of a model of 13.1 MB over each kind of link; SGD is
// applied. The rate counts both ways.
//   bazel run //tests/benchmark:link_benchmark
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/clock.h"
#include "common/base/freed_memory.h"
#include "tests/ps_server/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/linked_shard.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

constexpr int64_t kElements = 3274634;

// Gives a client the link of a LinkedShard, which keeps it.
class BorrowedLink : public ParameterLink {
 public:
  explicit BorrowedLink(ParameterLink* link) : link_(*link) {}

  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override {
    link_.Hello(request, deadline, std::move(done));
  }
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override {
    link_.Define(request, deadline, std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override {
    link_.Load(std::move(request), deadline, std::move(done));
  }
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override {
    link_.Seal(request, deadline, std::move(done));
  }
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override {
    link_.Pull(request, deadline, std::move(done));
  }
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<PushReply> done) override {
    link_.Push(std::move(request), deadline, std::move(done));
  }
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override {
    link_.BeginSnapshot(request, deadline, std::move(done));
  }
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    link_.ReadSnapshot(request, deadline, std::move(done));
  }
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override {
    link_.EndSnapshot(request, deadline, std::move(done));
  }

 private:
  ParameterLink& link_;
};

// A worker with its model, loaded.
class Job {
 public:
  Job(LinkKind kind, const Clock* clock) : shard_(kind, Shard(clock)) {
    ParameterClient::Options options;
    options.sender = MakeSender(0, 100);
    options.ps_names = {"/job:ps/task:0"};
    options.clock = clock;
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<BorrowedLink>(&shard_.link()));
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
  }

  absl::Status Load() {
    const auto hello = AwaitReply<HelloReply>([&](auto done) {
      client_->Hello(0, MakeHello(MakeSender(0, 100)), done);
    });
    if (!hello.ok()) return hello.status();
    const TensorDef tensor = MakeTensor("w", {kElements});
    const int placement[] = {0};
    absl::Status status = client_->SetModel({tensor}, placement);
    if (!status.ok()) return status;
    const uint64_t incarnations[] = {kPsIncarnation};
    client_->SetEpoch(1, incarnations);
    ModelDefinition model;
    model.optimizer = MakeDefine(MakeSender(0, 100), {}).optimizer();
    const TensorView view[] = {View()};
    return client_->LoadModel(model, view);
  }

  absl::Status Step() {
    const MutableTensorView into[] = {
        {reinterpret_cast<char*>(values_.data()), kElements * 4}};
    const absl::Status pulled = client_->PullAndWait(into);
    if (!pulled.ok()) return pulled;
    const TensorView gradient[] = {View()};
    return client_->PushAndWait(++step_, gradient).status();
  }

 private:
  static ShardServer::Options Shard(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = clock;
    return options;
  }
  TensorView View() const {
    return {reinterpret_cast<const char*>(gradients_.data()), kElements * 4};
  }

  std::vector<float> values_ = std::vector<float>(kElements);
  std::vector<float> gradients_ = std::vector<float>(kElements, 1e-9f);
  int64_t step_ = 0;
  LinkedShard shard_;
  std::unique_ptr<ParameterClient> client_;
};

void PullAndPush(benchmark::State& state) {
  KeepFreedMemory();
  const MonotonicClock clock{};
  const auto kind = static_cast<LinkKind>(state.range(0));
  state.SetLabel(NameOf(kind));
  Job job(kind, &clock);
  absl::Status status = job.Load();
  if (status.ok()) status = job.Step();
  for (auto _ : state) {
    if (status.ok()) status = job.Step();
    if (status.ok()) continue;
    state.SkipWithError(status.ToString().c_str());
    break;
  }
  state.SetBytesProcessed(state.iterations() * 2 * kElements * 4);
}

BENCHMARK(PullAndPush)
    ->DenseRange(0, 2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
