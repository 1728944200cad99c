// Fits y = 2 a - 3 b + 1 on ps tasks, from any number of workers, each with
// rows of its own. With `ps_server --ps_hosts=localhost:2222 --job_name=ps
// --task_index=0` running:
//
//   client_example localhost:2222 0 &   # worker 0 initializes
//   client_example localhost:2222 1
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "worker/client/client.h"

namespace {

constexpr int kSteps = 300;
constexpr int kRows = 32;

absl::Status Train(const char* ps_addresses, int worker) {
  muster::Client::Options options;
  options.ps_addresses = absl::StrSplit(ps_addresses, ',');
  options.worker_index = worker;
  options.say = [](const std::string& line) { std::puts(line.c_str()); };
  options.optimizer.set_name("adam");
  auto* const rate = options.optimizer.add_attr();
  rate->set_name("learning_rate");
  rate->set_f(0.05);
  auto model = muster::Client::Connect(
      options, {{"line/weights", {2}}, {"line/bias", {1}}});
  if (!model.ok()) return model.status();

  std::vector<float> w(2), bias(1);
  const absl::Status ready = worker == 0
                                 ? (*model)->Initialize({w, bias})
                                 : (*model)->WaitForOthersToInitialize();
  if (!ready.ok()) return ready;

  std::mt19937 random(worker);
  std::uniform_real_distribution<float> uniform(-1, 1);
  float loss = 0;
  const absl::Status pulled =
      (*model)->Pull({absl::MakeSpan(w), absl::MakeSpan(bias)});
  if (!pulled.ok()) return pulled;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> w_gradient(2), bias_gradient(1);
    loss = 0;
    for (int row = 0; row < kRows; ++row) {
      const float a = uniform(random), b = uniform(random);
      const float error = w[0] * a + w[1] * b + bias[0] - (2 * a - 3 * b + 1);
      loss += error * error / kRows;
      w_gradient[0] += 2 * error * a / kRows;
      w_gradient[1] += 2 * error * b / kRows;
      bias_gradient[0] += 2 * error / kRows;
    }
    const auto pushed = (*model)->PushPull(
        {w_gradient, bias_gradient}, {absl::MakeSpan(w), absl::MakeSpan(bias)});
    if (!pushed.ok()) return pushed.status();
  }
  std::printf("worker %d: loss=%.6f y = %.2f a + %.2f b + %.2f\n", worker, loss,
              w[0], w[1], bias[0]);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PS_HOST:PORT[,...] WORKER_INDEX\n",
                 argv[0]);
    return 2;
  }
  const absl::Status status = Train(argv[1], std::atoi(argv[2]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
