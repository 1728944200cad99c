// Pushes and pulls of a worker of ps-lite (BytePS's fork), for ps_lite.py,
// which starts it once for each role and says which in DMLC_ROLE.
//
//   ps_lite BYTES SECONDS
//
// A step pushes so many bytes of float32 in eight keys, waits, pulls them and
// waits, as a training step does; the server adds what is pushed to what it
// holds. At least so many seconds; then the sums are checked, and the worker
// prints one line of JSON. build_ps_lite.sh builds it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include "ps/ps.h"

namespace {

using Steady = std::chrono::steady_clock;

constexpr int kKeys = 8;
constexpr int kWarmUpSteps = 5;
constexpr size_t kMinSteps = 5;

double SecondsSince(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

class SumServer {
 public:
  SumServer() : server_(/*app_id=*/0) {
    server_.set_request_handle([this](const ps::KVMeta& request,
                                      const ps::KVPairs<char>& pairs,
                                      ps::KVServer<char>* server) {
      if (request.push) Add(pairs);
      server->Response(
          request, request.push ? ps::KVPairs<char>() : sums_[pairs.keys[0]]);
    });
  }

 private:
  void Add(const ps::KVPairs<char>& pushed) {
    ps::KVPairs<char>& sum = sums_[pushed.keys[0]];
    if (sum.vals.size() == 0) {
      sum.keys.CopyFrom(pushed.keys);
      sum.vals.CopyFrom(pushed.vals);
      sum.lens.CopyFrom(pushed.lens);
      return;
    }
    auto* const values = reinterpret_cast<float*>(sum.vals.data());
    const auto* const added =
        reinterpret_cast<const float*>(pushed.vals.data());
    for (size_t i = 0; i < pushed.vals.size() / sizeof(float); ++i) {
      values[i] += added[i];
    }
  }

  ps::KVServer<char> server_;
  std::unordered_map<ps::Key, ps::KVPairs<char>> sums_;
};

class Worker {
 public:
  explicit Worker(size_t bytes)
      : worker_(/*app_id=*/0, /*customer_id=*/0),
        gradient_(bytes / sizeof(float), 1.0F),
        parameter_(gradient_.size()) {
    size_t begin = 0;
    for (int key = 0; key < kKeys; ++key) {
      const size_t end = gradient_.size() * (key + 1) / kKeys;
      const auto size = static_cast<int>((end - begin) * sizeof(float));
      keys_.emplace_back(1, static_cast<ps::Key>(key));
      sizes_.emplace_back(1, size);
      pushed_.push_back(View(&gradient_[begin], size));
      pulled_.push_back(View(&parameter_[begin], size));
      begin = end;
    }
  }

  void Step() {
    std::vector<int> calls;
    for (int key = 0; key < kKeys; ++key) {
      calls.push_back(worker_.ZPush(keys_[key], pushed_[key], sizes_[key]));
    }
    Await(calls);
    calls.clear();
    for (int key = 0; key < kKeys; ++key) {
      calls.push_back(worker_.ZPull(keys_[key], &pulled_[key], &sizes_[key]));
    }
    Await(calls);
    ++steps_;
  }

  // Every push has added 1.
  bool Check() const {
    return std::all_of(parameter_.begin(), parameter_.end(),
                       [this](float value) { return value == steps_; });
  }

 private:
  static ps::SArray<char> View(float* values, int size_bytes) {
    ps::SArray<char> view;
    view.reset(reinterpret_cast<char*>(values), size_bytes, [](char*) {});
    return view;
  }

  void Await(const std::vector<int>& calls) {
    for (const int call : calls) worker_.Wait(call);
  }

  ps::KVWorker<char> worker_;
  std::vector<float> gradient_;
  std::vector<float> parameter_;
  std::vector<ps::SArray<ps::Key>> keys_;
  std::vector<ps::SArray<int>> sizes_;
  std::vector<ps::SArray<char>> pushed_;
  std::vector<ps::SArray<char>> pulled_;
  float steps_ = 0;
};

int Measure(size_t bytes, double seconds) {
  Worker worker(bytes);
  for (int i = 0; i < kWarmUpSteps; ++i) worker.Step();
  std::vector<double> times;
  for (const auto start = Steady::now();
       times.size() < kMinSteps || SecondsSince(start) < seconds;) {
    const auto before = Steady::now();
    worker.Step();
    times.push_back(SecondsSince(before));
  }
  if (!worker.Check()) {
    std::fprintf(stderr, "ps_lite: the sums are wrong\n");
    return 1;
  }
  std::sort(times.begin(), times.end());
  const double median_s = times[times.size() / 2];
  std::printf("{\"steps\": %zu, \"median_s\": %.6g, \"bytes_per_s\": %.6g}\n",
              times.size(), median_s,
              2 * static_cast<double>(bytes) / median_s);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const role = std::getenv("DMLC_ROLE");
  if (argc != 3 || role == nullptr) {
    std::fprintf(stderr, "usage: DMLC_ROLE=... ps_lite BYTES SECONDS\n");
    return 2;
  }
  ps::Start(/*customer_id=*/0);
  if (std::string(role) == "server") {
    auto* const server = new SumServer;
    ps::RegisterExitCallback([server] { delete server; });
  }
  int code = 0;
  if (std::string(role) == "worker") {
    code = Measure(std::strtoul(argv[1], nullptr, 10),
                   std::strtod(argv[2], nullptr));
  }
  ps::Finalize(/*customer_id=*/0, /*do_barrier=*/true);
  return code;
}
