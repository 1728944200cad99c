#include "common/rpc/backoff.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(BackoffTest, StaysUnderAGrowingLimit) {
  Backoff::Options options;
  options.initial = absl::Milliseconds(100);
  options.max = absl::Seconds(2);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Backoff backoff(options, seed);
    absl::Duration limit = options.initial;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const absl::Duration pause = backoff.Next();
      EXPECT_GE(pause, options.min) << "seed " << seed;
      EXPECT_LE(pause, limit) << "seed " << seed;
      limit = limit * 2 < options.max ? limit * 2 : options.max;
    }
  }
}

TEST(BackoffTest, TheSameSeedGivesTheSamePauses) {
  Backoff a({}, 7);
  Backoff b({}, 7);
  Backoff other({}, 8);
  bool differs = false;
  for (int i = 0; i < 5; ++i) {
    const absl::Duration pause = a.Next();
    EXPECT_EQ(pause, b.Next());
    differs |= pause != other.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(BackoffTest, ResetStartsAnew) {
  Backoff backoff({}, 7);
  for (int i = 0; i < 10; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(100));
}

}  // namespace
}  // namespace muster
