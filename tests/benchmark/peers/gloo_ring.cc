// Gloo's ring all-reduce between processes on loopback; built by
// build_gloo_ring.sh and started by gloo_ring.py.
//
//   gloo_ring RANK SIZE FLOATS SECONDS STORE
//
// STORE is an empty folder that all ranks share. Prints, on rank 0, one line of
// JSON: the bytes of the values over the median time of one all-reduce.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 3;
constexpr std::chrono::seconds kTimeout(60);

std::shared_ptr<gloo::Context> Connect(int rank, int size, const char* folder) {
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(kTimeout);
  context->connectFullMesh(store, device);
  return context;
}

void Sum(void* sum, const void* a, const void* b, size_t count) {
  gloo::sum<float>(sum, a, b, count);
}

double AllReduce(const std::shared_ptr<gloo::Context>& context,
                 std::vector<float>* values) {
  const auto begun = Clock::now();
  gloo::AllreduceOptions options(context);
  options.setInput(values->data(), values->size());
  options.setOutput(values->data(), values->size());
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(&Sum);
  gloo::allreduce(options);
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const auto context = Connect(rank, std::atoi(argv[2]), argv[5]);
  std::vector<float> values(std::atol(argv[3]), 0.0f);
  double first = 0;
  for (int i = 0; i < kWarmUp; ++i) first = AllReduce(context, &values);
  // All must make the same number: rank 0 says how many.
  std::vector<float> runs(1, rank == 0 ? std::atof(argv[4]) / first : 0);
  runs[0] = std::max(runs[0], rank == 0 ? 5.0f : 0.0f);
  AllReduce(context, &runs);
  std::vector<double> times;
  for (int i = 0; i < static_cast<int>(runs[0]); ++i) {
    times.push_back(AllReduce(context, &values));
  }
  std::sort(times.begin(), times.end());
  const double bytes = static_cast<double>(values.size() * sizeof(float));
  if (rank == 0) {
    std::printf("{\"bytes_per_s\": %.6g}\n", bytes / times[times.size() / 2]);
  }
  return 0;
}
