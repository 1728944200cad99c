#include "worker/model/memory_planner.h"

#include <algorithm>
#include <numeric>

namespace muster {
namespace {

int64_t RoundUp(int64_t size) {
  return (size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

bool LiveTogether(const BufferRequest& a, const BufferRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The lowest offset with `size` free bytes. `taken` are the placed buffers
// that live at the same time, by offset.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};
int64_t LowestGap(const std::vector<Extent>& taken, int64_t size) {
  int64_t offset = 0;
  for (const Extent& extent : taken) {
    if (offset + size <= extent.begin) break;
    offset = std::max(offset, extent.end);
  }
  return offset;
}

}  // namespace

MemoryPlan PlanMemory(absl::Span<const BufferRequest> requests) {
  std::vector<int> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return requests[a].size_bytes > requests[b].size_bytes;
  });
  MemoryPlan plan;
  plan.offsets.resize(requests.size());
  std::vector<int> placed;
  std::vector<Extent> taken;
  for (const int request : order) {
    taken.clear();
    for (const int other : placed) {
      if (!LiveTogether(requests[request], requests[other])) continue;
      const int64_t begin = plan.offsets[other];
      taken.push_back({begin, begin + RoundUp(requests[other].size_bytes)});
    }
    std::sort(taken.begin(), taken.end(), [](const Extent& a, const Extent& b) {
      return a.begin < b.begin;
    });
    const int64_t size = RoundUp(requests[request].size_bytes);
    plan.offsets[request] = LowestGap(taken, size);
    plan.total_bytes = std::max(plan.total_bytes, plan.offsets[request] + size);
    placed.push_back(request);
  }
  return plan;
}

}  // namespace muster
