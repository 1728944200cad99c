// Runs the simulation of tests/simulation from the command line:
//
//   simulate --seed=17                 one seed, with its history
//   simulate --first=1 --seeds=100000  many; stops at the first that fails
//   simulate --cut ...                 the worlds in which a tensor is cut
//   simulate --histories               what simulation_test compares with
#include <cstdint>
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/simulation/histories.h"
#include "tests/simulation/simulation.h"

ABSL_FLAG(uint64_t, seed, 0, "run this seed alone and print its history");
ABSL_FLAG(uint64_t, first, 1,
          "the first of many seeds; 1000000000 and more: all-reduce; "
          "2000000000 and more: two jobs");
ABSL_FLAG(uint64_t, seeds, 1000, "how many seeds");
ABSL_FLAG(int, bug, 0, "plant this bug, a number of tests/simulation/bug.h");
ABSL_FLAG(bool, cut, false, "the worlds in which a tensor is cut");
ABSL_FLAG(bool, quiet, false, "with --seed: no history");
ABSL_FLAG(bool, histories, false, "print the histories of seeds 1 to --seeds");
ABSL_FLAG(bool, keep_going, false, "count failing seeds instead of stopping");

namespace muster {
namespace {

Tensors ChosenTensors() {
  return absl::GetFlag(FLAGS_cut) ? Tensors::kCut : Tensors::kWhole;
}

int RunOne(uint64_t seed) {
  Simulation::Options options;
  options.seed = seed;
  options.tensors = ChosenTensors();
  options.bug = static_cast<Bug>(absl::GetFlag(FLAGS_bug));
  options.verbose = !absl::GetFlag(FLAGS_quiet);
  const SimulationResult result = Simulation(options).Run();
  std::printf("seed %llu: %s; history %016llx, %s of virtual time\n",
              static_cast<unsigned long long>(seed),
              result.violation.empty() ? "OK" : result.violation.c_str(),
              static_cast<unsigned long long>(result.history),
              absl::FormatDuration(result.virtual_time).c_str());
  return result.violation.empty() ? 0 : 1;
}

int RunMany(uint64_t first, uint64_t count) {
  const absl::Time start = absl::Now();
  int64_t failed = 0;
  int64_t faults = 0;
  int64_t restores = 0;
  int64_t saves = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const SimulationResult result = Simulate(
        seed, static_cast<Bug>(absl::GetFlag(FLAGS_bug)), ChosenTensors());
    faults += result.faults;
    restores += result.restores;
    saves += result.saves;
    if (result.violation.empty()) continue;
    ++failed;
    std::printf(
        "seed %llu: %s\n  replay: bazel run "
        "//tests/simulation:simulate -- %s--seed=%llu\n",
        static_cast<unsigned long long>(seed), result.violation.c_str(),
        absl::GetFlag(FLAGS_cut) ? "--cut " : "",
        static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    if (!absl::GetFlag(FLAGS_keep_going)) break;
  }
  std::printf(
      "%s\n",
      absl::StrCat("seeds from ", first, ": ", count, ", failed ", failed, ", ",
                   faults, " faults, ", restores, " epochs, ", saves,
                   " saves, ", absl::FormatDuration(absl::Now() - start))
          .c_str());
  return failed == 0 ? 0 : 1;
}

int PrintHistories(uint64_t count) {
  Histories histories;
  for (uint64_t seed = 1; seed <= count; ++seed) histories.Add(Simulate(seed));
  std::fputs(histories.text().c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed != 0) return muster::RunOne(seed);
  if (absl::GetFlag(FLAGS_histories)) {
    return muster::PrintHistories(absl::GetFlag(FLAGS_seeds));
  }
  return muster::RunMany(absl::GetFlag(FLAGS_first),
                         absl::GetFlag(FLAGS_seeds));
}
