#ifndef WORKER_TRAINING_TRAINING_SPEC_H_
#define WORKER_TRAINING_TRAINING_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"

namespace muster {

// Makes a checked TrainingSpec from its text: parses it, applies the --set
// `overrides` in their order (worker/training/training_override.h), puts the
// layers of blocks in the place of their uses (worker/model/expand_blocks.h),
// fills the defaults in and checks it. Stop conditions of the overrides, if one
// of them is on, replace all of the text's. `source` names the text in
// messages. The registries of layers, update rules and placement strategies
// must be linked in. Errors: InvalidArgument and NotFound naming the field
// (with line and column for the text), what was wanted and what was found.
absl::StatusOr<TrainingSpec> ParseTrainingSpec(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> overrides);

// The same for a file, the --training flag. Errors: also those of ReadFile.
absl::StatusOr<TrainingSpec> LoadTrainingSpec(
    absl::string_view path, absl::Span<const std::string> overrides);

// The place that set the stop conditions of `spec`: "--set", or `source`.
std::string StopSource(const TrainingSpec& spec, absl::string_view source,
                       absl::Span<const std::string> overrides);

// Checks everything except the model's layers and shapes, which ModelGraph
// checks, and the data, which CreateDataSet does.
absl::Status ValidateTrainingSpec(const TrainingSpec& spec);

// The fields that decide what is trained: two workers of one run must agree on
// them. Periods, paths and stop conditions are not among them: a restarted
// worker may have others.
TrainingSpec SemanticPart(TrainingSpec spec);

// SemanticPart as text.
std::string SemanticText(const TrainingSpec& spec);

// Errors: InvalidArgument if SemanticText is too long for the message in which
// a worker sends it to ps task 0.
absl::Status CheckTextSize(const TrainingSpec& spec);

// A hash of SemanticText; the same on every machine.
uint64_t SemanticFingerprint(const TrainingSpec& spec);

}  // namespace muster

#endif  // WORKER_TRAINING_TRAINING_SPEC_H_
