// Many workers that push as fast as they can (T21):
//
//   push_flood PS_HOST:PORT WORKERS STEPS ELEMENTS
//
// Every push adds 1 to each element. Prints "applied=K retries=R" when each
// element holds K = WORKERS * STEPS; exits with 1 if not.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/client/client.h"

namespace muster {
namespace {

struct Flood {
  const char* address = nullptr;
  int steps = 0;
  int64_t elements = 0;
  absl::Mutex mu;
  int64_t retries ABSL_GUARDED_BY(mu) = 0;
  absl::Status status ABSL_GUARDED_BY(mu);
};

absl::StatusOr<std::unique_ptr<Client>> Connect(const Flood& flood,
                                                int worker) {
  Client::Options options;
  options.ps_addresses = {flood.address};
  options.worker_index = worker;
  options.optimizer.set_name("sgd");
  Attr* const rate = options.optimizer.add_attr();
  rate->set_name("learning_rate");
  rate->set_f(1);
  return Client::Connect(options, {{"sums", {flood.elements}}});
}

absl::Status PushAll(Flood* flood, int worker) {
  auto model = Connect(*flood, worker);
  if (!model.ok()) return model.status();
  const absl::Status ready = (*model)->WaitForOthersToInitialize();
  if (!ready.ok()) return ready;
  const std::vector<float> minus_ones(flood->elements, -1);
  std::vector<float> pulled(flood->elements);
  for (int step = 0; step < flood->steps; ++step) {
    const absl::Status status = (*model)->Pull({absl::MakeSpan(pulled)});
    if (!status.ok()) return status;
    const auto outcome = (*model)->Push({minus_ones});
    if (!outcome.ok()) return outcome.status();
    absl::MutexLock lock(&flood->mu);
    flood->retries += outcome->retries;
  }
  return absl::OkStatus();
}

absl::Status Run(Flood* flood, int workers) {
  auto model = Connect(*flood, workers);
  if (!model.ok()) return model.status();
  std::vector<float> sums(flood->elements);
  absl::Status status = (*model)->Initialize({sums});
  if (!status.ok()) return status;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([flood, worker] {
      const absl::Status pushed = PushAll(flood, worker);
      absl::MutexLock lock(&flood->mu);
      flood->status.Update(pushed);
    });
  }
  for (std::thread& thread : threads) thread.join();
  {
    absl::MutexLock lock(&flood->mu);
    if (!flood->status.ok()) return flood->status;
  }
  status = (*model)->Pull({absl::MakeSpan(sums)});
  if (!status.ok()) return status;
  for (const float sum : sums) {
    if (sum != static_cast<float>(workers * flood->steps)) {
      return absl::InternalError(absl::StrCat("a sum is ", sum));
    }
  }
  absl::MutexLock lock(&flood->mu);
  std::printf("applied=%d retries=%lld\n", workers * flood->steps,
              static_cast<long long>(flood->retries));
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  muster::Flood flood;
  flood.address = argv[1];
  flood.steps = std::atoi(argv[3]);
  flood.elements = std::atoll(argv[4]);
  const absl::Status status = muster::Run(&flood, std::atoi(argv[2]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
