// Gloo's ring all-reduce between two processes on loopback; built by
// build_gloo_ring.sh.
//
//   gloo_ring BYTES SECONDS
//
// Prints one line of JSON: the bytes of the values over the median time of one
// all-reduce.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// Gloo's sockets: cubic, as raw TCP and Muster have on loopback, where bbr, the
// default of some machines, is half as fast.
extern "C" int socket(int domain, int type, int protocol) noexcept {
  const auto fd = static_cast<int>(syscall(SYS_socket, domain, type, protocol));
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", sizeof "cubic" - 1);
  return fd;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProcesses = 2;
constexpr int kWarmUp = 3;
constexpr float kLeastRuns = 5;
constexpr std::chrono::seconds kTimeout(60);

std::shared_ptr<gloo::Context> Connect(int rank, const std::string& folder) {
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, kProcesses);
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

// The median time.
double Measure(int rank, size_t bytes, double seconds,
               const std::string& folder) {
  const auto context = Connect(rank, folder);
  std::vector<float> values(bytes / sizeof(float), 0.0f);
  double last = 0;
  for (int i = 0; i < kWarmUp; ++i) last = AllReduce(context, &values);
  // Both must make the same number of runs: rank 0 says how many.
  const auto wanted = static_cast<float>(seconds / last);
  std::vector<float> runs(1, rank == 0 ? std::max(wanted, kLeastRuns) : 0);
  AllReduce(context, &runs);
  std::vector<double> times;
  for (int i = 0; i < static_cast<int>(runs[0]); ++i) {
    times.push_back(AllReduce(context, &values));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t bytes = std::strtoull(argv[1], nullptr, 10);
  char folder[] = "/tmp/gloo_ring.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const pid_t other = fork();
  if (other < 0) return 1;
  if (other == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const double median_s =
      Measure(other == 0 ? 1 : 0, bytes, std::atof(argv[2]), folder);
  if (other == 0) return 0;
  int status = 0;
  waitpid(other, &status, 0);
  std::filesystem::remove_all(folder);
  std::printf("{\"bytes_per_s\": %.6g}\n",
              static_cast<double>(bytes) / median_s);
  return status == 0 ? 0 : 1;
}
