#include "tests/fuzz/ready_shard.h"

#include <utility>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"

namespace muster {
namespace {

constexpr int64_t kElements = 20;

ShardServer::Options OptionsOf(const Clock* clock) {
  ShardServer::Options options;
  options.shard.incarnation = kPsIncarnation;
  options.shard.max_bytes = 4 << 20;
  options.push_budget_bytes = 4 << 20;
  options.clock = clock;
  return options;
}

void Load(ShardServer* shard, const Sender& sender, const char* tensor,
          int64_t elements) {
  const auto reply = AwaitReply<LoadReply>([&](auto done) {
    shard->Load(MakeLoad(sender, {MakeSlice(tensor, 0, elements)},
                         BytesOf(std::vector<float>(elements, 0.5f))),
                absl::InfiniteFuture(), std::move(done));
  });
  Wanted(reply, "a load");
}

}  // namespace

ReadyShard::ReadyShard() : server_(OptionsOf(&clock_)) {
  const Sender sender = MakeSender(0, 9);
  const auto call = [this](const auto& method, const auto& request) {
    Wanted(AwaitCall(server_, method, request, absl::InfiniteFuture()),
           method.path);
  };
  call(kHelloCall, MakeHello(sender));
  DefineRequest define = MakeDefine(
      sender, {MakeTensor("w", {kElements}), MakeTensor("s", {3}, STATE)});
  TableDef* const table = define.add_tables();
  table->set_name("u");
  table->set_dim(2);
  table->mutable_optimizer()->set_name("adagrad");
  table->set_max_rows(1);
  define.set_num_ps(1);
  call(kDefineCall, define);
  Load(&server_, sender, "w", kElements);
  Load(&server_, sender, "s", 3);
  call(kSealCall, MakeSeal(sender));
}

}  // namespace muster
