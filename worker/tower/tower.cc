#include "worker/tower/tower.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/tower/gradient_memory.h"
#include "worker/tower/mean.h"

namespace muster {

Tower::Tower(const Options& options) : options_(options) {
  CompiledModel& model = *options.model;
  if (options.accumulate_batches > 1) {
    gradients_ = PlaceGradients(model, &sums_);
    return;
  }
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    gradients_.push_back(model.mutable_gradient(static_cast<int>(i)));
  }
}

absl::Status Tower::Run(const Work& work) {
  loss_ = 0;
  correct_ = examples_ = 0;
  for (int64_t i = 0; i < options_.accumulate_batches; ++i) {
    const SeededBatch& now = work.batches[work.first + i * work.stride];
    ASSIGN_OR_RETURN(const CompiledModel::StepResult result,
                     options_.model->Step(*now.batch, now.seed,
                                          {work.listener, work.gate,
                                           BatchAfter(work, i), work.trace}));
    loss_ += result.loss;
    correct_ += result.correct;
    examples_ += now.batch->rows;
    if (options_.accumulate_batches > 1) Accumulate(i);
  }
  loss_ /= static_cast<double>(options_.accumulate_batches);
  return absl::OkStatus();
}

SeededBatch Tower::BatchAfter(const Work& work, int64_t i) const {
  if (i + 1 < options_.accumulate_batches) {
    return work.batches[work.first + (i + 1) * work.stride];
  }
  return work.next.empty() ? SeededBatch() : work.next[work.first];
}

// Adds the gradients of the batch that is done; `done` were before it.
void Tower::Accumulate(int64_t done) {
  const bool last = done + 1 == options_.accumulate_batches;
  const float scale =
      last ? 1.0f / static_cast<float>(options_.accumulate_batches) : 1.0f;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const absl::Span<const float> gradient =
        options_.model->gradient(static_cast<int>(i));
    if (done == 0) {
      std::copy(gradient.begin(), gradient.end(), gradients_[i].begin());
    } else {
      AddAndScale(gradient, scale, gradients_[i]);
    }
  }
}

}  // namespace muster
