#ifndef WORKER_HOOK_SUMMARY_HOOKS_H_
#define WORKER_HOOK_SUMMARY_HOOKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/summary/event_file_writer.h"
#include "common/tensor/shape.h"
#include "proto/hparams.pb.h"
#include "proto/summary.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/hook/evaluation.h"
#include "worker/hook/hook.h"
#include "worker/hook/input_images.h"
#include "worker/hook/job_summaries.h"
#include "worker/hook/training_summaries.h"

namespace muster {

// The parts that summary hooks work with; all outlive them.
struct SummaryParts {
  // Null: nothing is written.
  EventFileWriter* writer = nullptr;
  const Clock* clock = SystemClock();
  AccuracyCurve accuracy_curve = AccuracyCurve::kDrawn;
  // The factor of the learning rate of an update; null: 1.
  TrainingSummaries::RateFactor rate_factor;
  // Asks ps task 0 for the job's state.
  JobSummaries::Ask ask_job_state;
  // Without nodes: none is written.
  GraphDef graph;
  // The settings that tell runs apart.
  HparamsSessionStart hparams;
  // One example's, as the model reads it.
  Shape example_shape;
  // The examples that are shown, if such are images.
  InputImages::ReadExamples read_examples;
  // A line for the operator.
  Reporter reporter;
};

// Are there points to write? Else nobody needs a writer.
bool HasSummaries(const TrainingSpec& training);

// The chief's, in the order in which they are called; none without a writer.
// Errors: those of the optimizer's settings.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeSummaryHooks(
    const TrainingSpec& training, const SummaryParts& parts);

// Null without a writer, or if the examples are no images or none are wanted.
std::unique_ptr<InputImages> MakeInputImages(const SummarySpec& summary,
                                             const SummaryParts& parts);

// Writes what evaluations find: HALF_loss, and HALF_NAME of each metric, a
// table as a picture, the figures by class as a text. One that cannot be drawn
// is said. REQUIRES: `writer` is not null.
Evaluation::Listener MakeEvaluationSummaries(EventFileWriter* writer,
                                             Reporter reporter);

// `begin`, but what a save writes, it writes after the points up to its step:
// if the process is killed and the training goes on from that checkpoint, its
// curves have no gap. `writer` may be null, and outlives the saves.
CheckpointSaver::Begin WriteSummariesFirst(EventFileWriter* writer,
                                           CheckpointSaver::Begin begin);

}  // namespace muster

#endif  // WORKER_HOOK_SUMMARY_HOOKS_H_
