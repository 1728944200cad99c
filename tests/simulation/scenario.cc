#include "tests/simulation/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "tests/simulation/random.h"

namespace muster {
namespace {

// Two tensors of so many bytes share a part, more do not.
constexpr int64_t kSmallPartBytes = 48;

absl::Duration UpTo(Random& random, absl::Duration longest) {
  return longest * random.Fraction();
}

// Dice of its own: the rest of a seed's scenario is the same in all modes.
void DrawMode(Scenario& s) {
  Random random(s.seed * 0x9e3779b97f4a7c15u + 5);
  const int64_t mode = random.Between(0, 9);
  if (mode < 4) {
    s.pipeline_depth = static_cast<int>(random.Between(1, 2));
    return;
  }
  s.mode = mode < 8 ? Mode::kSync : Mode::kBoundedStaleness;
  s.replicas_to_aggregate = static_cast<int>(random.Between(1, s.num_workers));
  s.min_replicas = static_cast<int>(
      random.Happens(0.2) ? random.Between(1, s.replicas_to_aggregate) : 0);
  s.bound = static_cast<int>(random.Between(0, 3));
}

// The same: dice of its own.
void MakeAllReduce(Scenario& s) {
  Random random(s.seed * 0x9e3779b97f4a7c15u + 7);
  s.all_reduce = true;
  s.mode = Mode::kSync;
  s.pipeline_depth = 1;
  s.num_workers = static_cast<int>(random.Between(2, 4));
  s.num_ps = s.num_workers;
  s.replicas_to_aggregate = s.num_workers;
  s.min_replicas = s.num_workers;
  // Each step waits for everybody and for each lost message: what happens is to
  // fall into the training, not before it.
  s.lose /= 4;
  s.faults += 2;
  s.between_faults *= 5;
}

// The same. In sync an update is of as many as are there.
void DrawOpen(Scenario& s) {
  Random random(s.seed * 0x9e3779b97f4a7c15u + 11);
  s.first_late = s.num_workers;
  s.is_open = !s.all_reduce && random.Happens(0.3);
  if (!s.is_open) return;
  s.first_late = static_cast<int>(random.Between(1, s.num_workers));
  s.replicas_to_aggregate = s.num_workers;
  s.min_replicas = std::min(s.min_replicas, s.first_late);
}

// The same. An epoch is seldom a multiple of a step, and the job of about
// stop_steps of them.
void DrawRows(Scenario& s) {
  Random random(s.seed * 0x9e3779b97f4a7c15u + 9);
  s.step_rows = random.Between(1, 5);
  s.leases_ahead = static_cast<int>(random.Between(1, 3));
  s.has_unequal_steps = s.mode != Mode::kSync && random.Happens(0.4);
  const int64_t epochs = random.Between(1, 3);
  const int64_t update_rows =
      s.step_rows * (s.mode == Mode::kSync ? s.replicas_to_aggregate : 1);
  s.epoch_rows =
      s.stop_steps * update_rows / epochs + random.Between(0, update_rows);
  if (random.Happens(0.4)) return;
  s.stop_epochs = static_cast<double>(epochs) - (random.Happens(0.3) ? 0.5 : 0);
}

std::string ModeName(const Scenario& s) {
  if (s.all_reduce) return "all-reduce";
  switch (s.mode) {
    case Mode::kAsync:
      return absl::StrCat("async ", s.pipeline_depth, " deep");
    case Mode::kSync:
      return absl::StrCat("sync of ", s.replicas_to_aggregate, " (at least ",
                          s.min_replicas, ")");
    default:
      return absl::StrCat("clock lag of ", s.bound);
  }
}

Scenario MakeScenario(uint64_t seed, Tensors tensors) {
  Random random(seed * 0x9e3779b97f4a7c15u + 1);
  Scenario s;
  s.seed = seed;
  s.num_ps = static_cast<int>(random.Between(1, 3));
  s.num_workers = static_cast<int>(random.Between(1, 4));
  s.tensors_per_ps = static_cast<int>(random.Between(1, 4));
  s.max_part_bytes = random.Happens(0.6) ? kSmallPartBytes : kMaxPartBytes;
  s.momentum = random.Happens(0.3);
  s.stop_steps = random.Between(5, 40);
  s.save_every_steps = random.Between(2, 12);
  s.keep = static_cast<int>(random.Between(1, 4));
  s.compute = absl::Milliseconds(1) + UpTo(random, absl::Milliseconds(20));

  s.latency = absl::Microseconds(100) + UpTo(random, absl::Milliseconds(3));
  // A third of the runs have a good network: there, deaths alone must do.
  if (random.Happens(0.67)) {
    s.lose = 0.06 * random.Fraction();
    s.duplicate = 0.1 * random.Fraction();
    s.slow = 0.05 * random.Fraction();
  }
  s.file_call = UpTo(random, absl::Milliseconds(4));
  s.power_loss = random.Fraction();
  s.faults = static_cast<int>(random.Between(0, 7));
  s.between_faults =
      absl::Milliseconds(20) + UpTo(random, absl::Milliseconds(400));
  DrawMode(s);
  if (seed >= kAllReduceSeeds && seed < kTwoJobSeeds) MakeAllReduce(s);
  DrawOpen(s);
  DrawRows(s);
  s.restart = absl::Milliseconds(10) + UpTo(random, absl::Milliseconds(1500));
  s.is_cut = tensors == Tensors::kCut;
  if (s.is_cut) s.num_ps = std::max(2, s.num_ps);
  return s;
}

// Another job with the ps tasks, the network and the faults of `first`, and
// dice of its own.
Scenario MakeSecond(const Scenario& first, Tensors tensors) {
  const Scenario other =
      MakeScenario(first.seed * 0x2545f4914f6cdd1du % kAllReduceSeeds, tensors);
  Scenario s = first;
  s.num_workers = other.num_workers;
  s.tensors_per_ps = other.tensors_per_ps;
  s.max_part_bytes = other.max_part_bytes;
  s.momentum = other.momentum;
  s.mode = other.mode;
  s.pipeline_depth = other.pipeline_depth;
  s.replicas_to_aggregate = other.replicas_to_aggregate;
  s.min_replicas = other.min_replicas;
  s.bound = other.bound;
  s.stop_steps = other.stop_steps;
  s.is_open = other.is_open;
  s.first_late = other.first_late;
  s.stop_epochs = other.stop_epochs;
  s.epoch_rows = other.epoch_rows;
  s.step_rows = other.step_rows;
  s.has_unequal_steps = other.has_unequal_steps;
  s.leases_ahead = other.leases_ahead;
  s.save_every_steps = other.save_every_steps;
  s.keep = other.keep;
  s.compute = other.compute;
  return s;
}

}  // namespace

std::vector<Scenario> MakeScenarios(uint64_t seed, Tensors tensors) {
  std::vector<Scenario> jobs = {MakeScenario(seed, tensors)};
  if (seed < kTwoJobSeeds) return jobs;
  Scenario& first = jobs.front();
  // More happens, over a longer time: there is more that it can happen to.
  first.faults += 2;
  first.between_faults *= 2;
  jobs.push_back(MakeSecond(first, tensors));
  // One job may be the default namespace's.
  if (seed % 2 == 0) jobs.front().space = "a";
  jobs.back().space = "b";
  return jobs;
}

std::string Describe(const Scenario& s) {
  return absl::StrCat(
      s.space.empty() ? "" : absl::StrCat("namespace ", s.space, ": "),
      s.num_ps, " ps, ", s.num_workers, " workers, ",
      s.is_open ? absl::StrCat("from ", s.first_late, " on late, ") : "",
      s.tensors_per_ps, " tensors a ps", s.is_cut ? " and a cut one" : "",
      ", parts of ", s.max_part_bytes, " bytes, ",
      s.momentum ? "momentum" : "sgd", ", ", ModeName(s), ", ",
      s.stop_epochs > 0 ? absl::StrCat(s.stop_epochs, " epochs")
                        : absl::StrCat(s.stop_steps, " steps"),
      " of ", s.epoch_rows, " rows, ", s.step_rows,
      s.has_unequal_steps ? " and more" : "", " a step, ", s.leases_ahead,
      " ahead, a save in ", s.save_every_steps, ", compute ",
      absl::FormatDuration(s.compute), ", latency ",
      absl::FormatDuration(s.latency), ", lose ", s.lose, ", duplicate ",
      s.duplicate, ", slow ", s.slow, ", file call ",
      absl::FormatDuration(s.file_call), ", power loss ", s.power_loss, ", ",
      s.faults, " faults every ", absl::FormatDuration(s.between_faults),
      ", restart after ", absl::FormatDuration(s.restart));
}

}  // namespace muster
