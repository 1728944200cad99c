// Made by generate_clip_golden.py with torch 1.13.0a0.
#ifndef TESTS_WORKER_TOWER_CLIP_GOLDEN_H_
#define TESTS_WORKER_TOWER_CLIP_GOLDEN_H_

namespace muster {

// The elements of all tensors, one after the other.
struct ClipGolden {
  // A ClippingSpec.
  const char* spec;
  double gradient[9];
};

inline constexpr int kClipSizes[] = {5, 1, 3};
inline constexpr double kClipGradient[] = {3.0,   -0.25, 0.0,     4.0, 1.5,
                                           -12.0, 0.125, -0.0625, 0.5};

inline constexpr ClipGolden kClipGoldens[] = {
    {"by_value: 1.25",
     {1.25, -0.25, 0.0, 1.25, 1.25, -1.25, 0.125, -0.0625, 0.5}},
    {"by_norm: 2.5",
     {1.4350943451053297, -0.11959119542544415, 0.0, 1.9134591268071064,
      0.7175471725526649, -2.499999791666684, 0.125, -0.0625, 0.5}},
    {"by_global_norm: 5",
     {1.1451314002577928, -0.09542761668814939, 0.0, 1.5268418670103903,
      0.5725657001288964, -4.580525601031171, 0.047713808344074696,
      -0.023856904172037348, 0.19085523337629878}},
    {"by_global_norm: 14",
     {3.0, -0.25, 0.0, 4.0, 1.5, -12.0, 0.125, -0.0625, 0.5}},
};

}  // namespace muster

#endif  // TESTS_WORKER_TOWER_CLIP_GOLDEN_H_
