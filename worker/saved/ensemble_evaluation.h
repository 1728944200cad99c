#ifndef WORKER_SAVED_ENSEMBLE_EVALUATION_H_
#define WORKER_SAVED_ENSEMBLE_EVALUATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/hook/evaluation.h"
#include "worker/saved/ensemble.h"

namespace muster {

// The figures of an ensemble over a whole data set.
struct EnsembleResult {
  struct Member {
    std::string name;
    std::string model;
    // The file or checkpoint of its parameters.
    std::string parameters;
    std::string device;
    // As of the member alone: the loss has its penalties.
    EvaluationResult figures;
  };

  std::vector<Member> members;
  // The means of the members' figures; no tables.
  EvaluationResult mean;
  // Those of the members' mean probabilities; the loss has no penalties.
  EvaluationResult ensemble;
};

// Goes once through the data. Metrics and the loss are those of the first
// member. REQUIRES: loaded, is_labelled, not begun. Errors: Ensemble::Next's;
// MetricSet::Create's; InvalidArgument for a data set without a good row.
absl::StatusOr<EnsembleResult> EvaluateEnsemble(Ensemble* ensemble);

// As JSON: {"members": [{"name": ...}, ...], "mean": {...}, "ensemble": {...}}.
std::string EnsembleJson(const EnsembleResult& result);

// A Markdown table with a line for each member, their mean and the ensemble.
std::string EnsembleTable(const EnsembleResult& result);

}  // namespace muster

#endif  // WORKER_SAVED_ENSEMBLE_EVALUATION_H_
