#include "tests/simulation/histories.h"

#include "absl/strings/str_format.h"

namespace muster {

void Histories::Add(const SimulationResult& result) {
  history_.Add(result.history);
  parameters_.Add(result.parameters);
  if (++seeds_ % kSeedsInALine != 0) return;
  absl::StrAppendFormat(&text_, "seeds %d-%d history %016x parameters %016x\n",
                        seeds_ - kSeedsInALine + 1, seeds_, history_.value(),
                        parameters_.value());
  history_ = RunningHash();
  parameters_ = RunningHash();
}

}  // namespace muster
