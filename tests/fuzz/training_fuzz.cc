// The text of a training and its --set overrides: lines that begin with
// "--set ", the rest is the text.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/fuzz/fuzz.h"
#include "worker/model/model_graph.h"
#include "worker/training/training_spec.h"

namespace muster {

void TryInput(absl::string_view input) {
  std::vector<std::string> overrides;
  std::string text;
  for (absl::string_view line : absl::StrSplit(input, '\n')) {
    if (absl::ConsumePrefix(&line, "--set ")) {
      overrides.emplace_back(line);
    } else {
      absl::StrAppend(&text, line, "\n");
    }
  }
  const auto spec = ParseTrainingSpec(text, "input", overrides);
  if (!spec.ok()) return;
  ModelGraph::Create(spec->model()).status().IgnoreError();
  const auto again = ParseTrainingSpec(spec->DebugString(), "printed", {});
  Want(Wanted(again, "the text of a training").DebugString() ==
           spec->DebugString(),
       "the same training");
  Want(SemanticFingerprint(*again) == SemanticFingerprint(*spec),
       "the same fingerprint");
}

}  // namespace muster
