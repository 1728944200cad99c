// The Winograd kernel for 5x5 windows beside oneDNN's direct convolution, on 12
// shapes, each pass, one thread. Exits with 1 if the backend would take the
// kernel where it needs more than 1.10 of oneDNN's time, by the median of pairs
// that are next to each other in time.
//   bazel run //tests/benchmark:conv_benchmark [-- --pairs=9]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/benchmark/owned_primitive.h"
#include "worker/backend/cpu/dnnl_conv2d.h"
#include "worker/backend/cpu/winograd_conv2d.h"

ABSL_FLAG(int, pairs, 9, "pairs of each shape and pass");

namespace muster {
namespace {

constexpr double kMostOfOneDnn = 1.10;
// Each side of a pair runs for at least so long.
constexpr absl::Duration kLeast = absl::Milliseconds(20);

struct ConvShape {
  int64_t src_channels, dst_channels, side, batch;
};

// mnist_cnn's second convolution at three batches, an inception branch, and
// square ones from few channels to many.
constexpr ConvShape kShapes[] = {
    {32, 64, 14, 1},   {32, 64, 14, 16},  {32, 64, 14, 128}, {16, 48, 28, 1},
    {64, 64, 28, 1},   {64, 64, 14, 16},  {128, 128, 14, 1}, {128, 128, 14, 16},
    {256, 256, 14, 1}, {256, 256, 14, 8}, {512, 512, 14, 1}, {512, 512, 14, 4},
};

struct NamedPass {
  const char* name;
  CpuPrimitive (*own)(const CpuContext&, const Conv2dDesc&, int64_t);
  CpuPrimitive (*dnnl)(const CpuContext&, const Conv2dDesc&);
};

constexpr NamedPass kPasses[] = {
    {"forward", &MakeWinogradForward, &MakeDnnlConv2dForward},
    {"data", &MakeWinogradBackwardData, &MakeDnnlConv2dBackwardData},
    {"weights", &MakeWinogradBackwardWeights, &MakeDnnlConv2dBackwardWeights},
};

Conv2dDesc DescOf(const ConvShape& shape) {
  Conv2dDesc desc;
  desc.batch = shape.batch;
  desc.src_channels = shape.src_channels;
  desc.dst_channels = shape.dst_channels;
  desc.height = desc.width = shape.side;
  desc.window = {5, 5, 1, 1, 2, 2, 2, 2};
  desc.has_bias = true;
  return desc;
}

// Seconds of one execution.
double Time(OwnedPrimitive* primitive, int times) {
  const absl::Time start = absl::Now();
  for (int i = 0; i < times; ++i) {
    if (!primitive->Execute()) std::abort();
  }
  return absl::ToDoubleSeconds(absl::Now() - start) / times;
}

double MedianRatio(OwnedPrimitive* own, OwnedPrimitive* dnnl) {
  Time(own, 1);
  const double once = Time(own, 1);
  const int times = 1 + static_cast<int>(absl::ToDoubleSeconds(kLeast) / once);
  Time(dnnl, times);
  std::vector<double> ratios;
  for (int i = 0; i < absl::GetFlag(FLAGS_pairs); ++i) {
    const double ours = Time(own, times);
    ratios.push_back(ours / Time(dnnl, times));
  }
  const auto middle = ratios.begin() + ratios.size() / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

// Returns whether the backend's choice is as promised.
bool Compare(const CpuContext& context, const ConvShape& shape,
             const NamedPass& pass) {
  const Conv2dDesc desc = DescOf(shape);
  OwnedPrimitive own(*pass.own(context, desc, DnnlDstBlock(context, desc)));
  OwnedPrimitive dnnl(*pass.dnnl(context, desc));
  const double ratio = MedianRatio(&own, &dnnl);
  const bool is_taken = IsForWinograd(desc);
  const bool is_slow = is_taken && ratio > kMostOfOneDnn;
  std::printf("%4d -> %4d channels, %2dx%-2d, batch %3d  %-8s %5.2f  %s%s\n",
              static_cast<int>(shape.src_channels),
              static_cast<int>(shape.dst_channels),
              static_cast<int>(shape.side), static_cast<int>(shape.side),
              static_cast<int>(shape.batch), pass.name, ratio,
              is_taken ? "Winograd" : "oneDNN", is_slow ? "  TOO SLOW" : "");
  std::fflush(stdout);
  return !is_slow;
}

int CompareAll() {
  const CpuContext context = {dnnl::engine(dnnl::engine::kind::cpu, 0),
                              /*threads=*/1};
  std::printf("the Winograd kernel's time over oneDNN's, and which is taken\n");
  bool all = true;
  for (const ConvShape& shape : kShapes) {
    for (const NamedPass& pass : kPasses) all &= Compare(context, shape, pass);
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return muster::CompareAll();
}
