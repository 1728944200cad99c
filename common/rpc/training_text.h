// The text of a worker's training, which ps task 0 compares.
#ifndef COMMON_RPC_TRAINING_TEXT_H_
#define COMMON_RPC_TRAINING_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// What computes a worker's gradients: layers of Muster's, or a program.
constexpr absl::string_view kLayersKind = "layers";
constexpr absl::string_view kProgramKind = "program";

// What RegisterRequest.training_text says, line by line.
struct TrainingText {
  // One of the above; "" of a text that does not say it.
  std::string kind;
  // What workers of one kind have alike.
  std::string own;
  // What all workers of a job have alike.
  std::string shared;
};

std::string JoinTrainingText(const TrainingText& text);

// A text that does not say its kind is all shared.
TrainingText SplitTrainingText(absl::string_view joined);

}  // namespace muster

#endif  // COMMON_RPC_TRAINING_TEXT_H_
