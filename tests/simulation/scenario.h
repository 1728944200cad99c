#ifndef TESTS_SIMULATION_SCENARIO_H_
#define TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// How the workers' gradients meet.
enum class Mode { kAsync, kSync, kBoundedStaleness };

// One job and what happens to it: a function of the seed.
struct Scenario {
  uint64_t seed = 0;

  // The job.
  std::string space;
  int num_ps = 1;
  int num_workers = 1;
  // The cluster takes any worker. Those from first_late on come while others
  // train, and some of them leave for good.
  bool is_open = false;
  int first_late = 0;
  int tensors_per_ps = 1;
  // Besides, one tensor of several blocks is cut over the ps tasks.
  bool is_cut = false;
  int64_t max_part_bytes = 0;
  bool momentum = false;
  Mode mode = Mode::kAsync;
  // Sync among processes that each hold a worker and a ps task.
  bool all_reduce = false;
  // In async.
  int pipeline_depth = 1;
  // In sync: the mean is that of so many workers; the others are backups.
  int replicas_to_aggregate = 0;
  int min_replicas = 0;
  // In bounded staleness.
  int bound = 0;
  // The job ends after so many steps, unless it does by epochs.
  int64_t stop_steps = 0;
  // 0: by steps.
  double stop_epochs = 0;
  int64_t epoch_rows = 0;
  // Of a worker's step; without rounds some have steps of more rows.
  int64_t step_rows = 1;
  bool has_unequal_steps = false;
  int leases_ahead = 1;
  int64_t save_every_steps = 0;
  int keep = 2;
  // The time of one step's gradients, on average.
  absl::Duration compute;

  // The network, for each message.
  absl::Duration latency;
  double lose = 0;
  double duplicate = 0;
  double slow = 0;

  // One call of the file system, on average.
  absl::Duration file_call;
  // How often a dying chief takes its machine with it.
  double power_loss = 0;

  // Deaths, clogs and the like, and the pauses between them, on average.
  int faults = 0;
  absl::Duration between_faults;
  absl::Duration restart;

  int64_t StepRowsOf(int worker) const {
    return step_rows + (has_unequal_steps ? worker % 3 : 0);
  }
  // The rows of the whole job; 0 if it ends by steps.
  int64_t RowLimit() const {
    return static_cast<int64_t>(stop_epochs * static_cast<double>(epoch_rows));
  }
  // With so many rows left, whoever is there could take another step.
  int64_t MostRowsLeft() const {
    return mode == Mode::kSync ? step_rows * replicas_to_aggregate
                               : StepRowsOf(has_unequal_steps ? 2 : 0);
  }
};

// From this seed on the jobs are all-reduce; from that one on there are two
// jobs on the same ps tasks, which keep serving.
inline constexpr uint64_t kAllReduceSeeds = 1000000000;
inline constexpr uint64_t kTwoJobSeeds = 2000000000;

// A seed has two worlds. That of whole tensors has the history that it had
// before tensors could be cut.
enum class Tensors { kWhole, kCut };

// One for each job of the seed. What happens to all of them, and the ps tasks,
// are the first one's.
std::vector<Scenario> MakeScenarios(uint64_t seed, Tensors tensors);

// For people.
std::string Describe(const Scenario& scenario);

}  // namespace muster

#endif  // TESTS_SIMULATION_SCENARIO_H_
