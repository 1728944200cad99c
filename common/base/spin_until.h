#ifndef COMMON_BASE_SPIN_UNTIL_H_
#define COMMON_BASE_SPIN_UNTIL_H_

#include <chrono>
#include <thread>

namespace muster {

// A sleep and a wake cost 56 to 100 us where this was measured, a hand-off
// between two that spin 0.13 us. Longer than this is better spent by others.
constexpr std::chrono::microseconds kSpin{20};

// The machine as a spin sees it; tests have another.
struct SpinMachine {
  static std::chrono::steady_clock::time_point Now() {
    return std::chrono::steady_clock::now();
  }
  // Alone on one core, a spin only keeps the other from running.
  static bool HasCores() {
    static const bool has_cores = std::thread::hardware_concurrency() > 1;
    return has_cores;
  }
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
};

// For a thread that is about to sleep until another has done something: looks
// at ready() until it holds, but only for `limit`. Returns whether it holds.
template <typename Machine = SpinMachine, typename Ready>
bool SpinUntil(Ready ready, std::chrono::microseconds limit = kSpin) {
  constexpr int kLooksPerTime = 32;
  if (!Machine::HasCores()) return ready();
  const auto end = Machine::Now() + limit;
  do {
    for (int i = 0; i < kLooksPerTime; ++i) {
      if (ready()) return true;
      Machine::Pause();
    }
  } while (Machine::Now() < end);
  return false;
}

}  // namespace muster

#endif  // COMMON_BASE_SPIN_UNTIL_H_
