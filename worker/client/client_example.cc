// Fits y = 2 a - 3 b + 1 on ps tasks, from any number of workers, each with
// rows of its own. With `ps_server --ps_hosts=localhost:2222 --job_name=ps
// --task_index=0` running:
//
//   client_example localhost:2222 0 &   # worker 0 initializes
//   client_example localhost:2222 1
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "worker/client/client.h"

namespace {

using muster::Client;

// The line, or the gradient of its error.
struct Line {
  std::vector<float> w = {0, 0};
  std::vector<float> bias = {0};
};

// One worker's rows, as many and as new as are asked for.
struct Rows {
  // The gradient of the mean squared error, `loss`, over a few more.
  Line Gradient(const Line& line);

  std::mt19937 random;
  float loss = 0;
};

absl::Status Train(const Client::Options& options, Rows* rows, Line* line) {
  ASSIGN_OR_RETURN(const auto model,
                   Client::Connect(options, {{"w", {2}}, {"bias", {1}}}));
  const auto values = {absl::MakeSpan(line->w), absl::MakeSpan(line->bias)};
  RETURN_IF_ERROR(options.worker_index == 0
                      ? model->Initialize({line->w, line->bias})
                      : model->WaitForOthersToInitialize());
  RETURN_IF_ERROR(model->Pull(values));
  for (int step = 0; step < 300; ++step) {
    const Line diff = rows->Gradient(*line);
    RETURN_IF_ERROR(model->PushPull({diff.w, diff.bias}, values).status());
  }
  return absl::OkStatus();
}

Line Rows::Gradient(const Line& line) {
  constexpr int kRows = 32;
  std::uniform_real_distribution<float> uniform(-1, 1);
  Line diff;
  loss = 0;
  for (int row = 0; row < kRows; ++row) {
    const float a = uniform(random), b = uniform(random);
    const float y = 2 * a - 3 * b + 1;
    const float error = line.w[0] * a + line.w[1] * b + line.bias[0] - y;
    loss += error * error / kRows;
    diff.w[0] += 2 * error * a / kRows;
    diff.w[1] += 2 * error * b / kRows;
    diff.bias[0] += 2 * error / kRows;
  }
  return diff;
}

Client::Options MakeOptions(const char* ps_addresses, int worker) {
  Client::Options options;
  options.ps_addresses = absl::StrSplit(ps_addresses, ',');
  options.worker_index = worker;
  options.reporter =
      muster::Reporter([](muster::Reporter::Level, absl::string_view line) {
        std::puts(std::string(line).c_str());
      });
  options.optimizer.set_name("adam");
  auto* const rate = options.optimizer.add_attr();
  rate->set_name("learning_rate");
  rate->set_f(0.05);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PS_HOST:PORT[,...] WORKER_INDEX\n",
                 argv[0]);
    return 2;
  }
  const int worker = std::atoi(argv[2]);
  Rows rows{std::mt19937(worker)};
  Line line;
  const absl::Status status = Train(MakeOptions(argv[1], worker), &rows, &line);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("worker %d: loss=%.6f y = %.2f a + %.2f b + %.2f\n", worker,
              rows.loss, line.w[0], line.w[1], line.bias[0]);
  return 0;
}
