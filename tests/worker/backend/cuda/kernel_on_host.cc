#include "tests/worker/backend/cuda/kernel_on_host.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simulation/fiber.h"

namespace muster {
namespace {

// Kernels call little. AddressSanitizer clears all of it at each switch.
constexpr size_t kStackBytes = size_t{32} << 10;

// One grid as it runs. A fiber runs threads of a block one after another until
// one of them waits at a barrier; then another fiber goes on with the rest. So
// a kernel without barriers is a plain loop in one fiber.
class Grid {
 public:
  Grid(const std::function<void()>& thread, dim3 threads)
      : thread_(thread),
        shape_{threads.x, threads.y, threads.z},
        threads_(threads.x * threads.y * threads.z) {}

  void RunBlock() {
    next_ = 0;
    std::vector<std::unique_ptr<Fiber>> waiting;
    while (next_ < threads_) {
      auto fiber =
          std::make_unique<Fiber>([this] { RunThreads(); }, kStackBytes);
      Resume(*fiber);
      if (!fiber->done()) waiting.push_back(std::move(fiber));
    }
    while (!waiting.empty()) {
      assert(waiting.size() == threads_ &&
             "a thread returned while others of its block are at a barrier");
      std::vector<std::unique_ptr<Fiber>> still_waiting;
      for (std::unique_ptr<Fiber>& fiber : waiting) {
        Resume(*fiber);
        if (!fiber->done()) still_waiting.push_back(std::move(fiber));
      }
      waiting = std::move(still_waiting);
    }
  }

  // Called by the running thread of the grid.
  void Wait() {
    const uint3 thread = threadIdx;
    running_->Yield();
    threadIdx = thread;
  }

 private:
  void Resume(Fiber& fiber) {
    running_ = &fiber;
    fiber.Resume();
  }

  void RunThreads() {
    while (next_ < threads_) {
      const unsigned i = next_++;
      threadIdx = {i % shape_.x, i / shape_.x % shape_.y,
                   i / (shape_.x * shape_.y)};
      thread_();
    }
  }

  const std::function<void()>& thread_;
  const uint3 shape_;
  const unsigned threads_;
  unsigned next_ = 0;
  Fiber* running_ = nullptr;
};

// The grid that this host thread runs.
thread_local Grid* running_grid = nullptr;

bool Within(dim3 shape, unsigned x, unsigned y, unsigned z) {
  return shape.x >= 1 && shape.x <= x && shape.y >= 1 && shape.y <= y &&
         shape.z >= 1 && shape.z <= z;
}

}  // namespace

// The limits of every compute capability since 3.0.
cudaError_t CheckGrid(dim3 blocks, dim3 threads) {
  const bool fits = Within(blocks, 2147483647, 65535, 65535) &&
                    Within(threads, 1024, 1024, 64) &&
                    uint64_t{threads.x} * threads.y * threads.z <= 1024;
  return fits ? cudaSuccess : cudaErrorInvalidConfiguration;
}

void RunOnHost(const std::function<void()>& thread, dim3 blocks, dim3 threads) {
  assert(CheckGrid(blocks, threads) == cudaSuccess && running_grid == nullptr);
  Grid grid(thread, threads);
  running_grid = &grid;
  gridDim = {blocks.x, blocks.y, blocks.z};
  blockDim = {threads.x, threads.y, threads.z};
  for (unsigned z = 0; z < blocks.z; ++z)
    for (unsigned y = 0; y < blocks.y; ++y)
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        grid.RunBlock();
      }
  running_grid = nullptr;
}

}  // namespace muster

void __syncthreads() { muster::running_grid->Wait(); }
