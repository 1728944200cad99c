#include "worker/saved/ensemble_member.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "worker/task/class_names_file.h"
#include "worker/task/kept_training.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

// Without what only a training asks for.
InputSpec RowsOf(const TrainingSpec& training) {
  InputSpec input = training.input();
  input.clear_batch_size();
  input.clear_global_batch_size();
  input.clear_shuffle();
  input.clear_shuffle_buffer();
  input.clear_prefetch();
  input.clear_threads();
  input.clear_stream();
  input.clear_synthetic_examples();
  return input;
}

std::string DataText(const EnsembleMember& member) {
  InputSpec input = RowsOf(member.training);
  input.clear_map();
  input.clear_shape();
  return input.ShortDebugString();
}

absl::Status Differ(const EnsembleMember& one, const EnsembleMember& other,
                    const std::string& what, const std::string& of_one,
                    const std::string& of_other) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--ensemble: wanted members with the same ", what, ", found '", one.name,
      "' with ", of_one, " and '", other.name, "' with ", of_other));
}

const char* KindOf(const LossType& loss) {
  switch (loss.prediction) {
    case Prediction::kSoftmax:
      return "probabilities of one class a row";
    case Prediction::kSigmoid:
      return "probabilities, each by itself";
    case Prediction::kIdentity:
      return "numbers";
  }
  return "";
}

std::string DescribeOutputs(const CompiledModel& model) {
  return absl::StrCat(model.num_outputs(), " outputs, ", KindOf(model.loss()));
}

// `run` is a folder, "runs/a", or a file, "weights/a.safetensors".
absl::StatusOr<EnsembleMember> ReadMember(const std::string& run,
                                          const std::string& training,
                                          absl::Span<const std::string> sets,
                                          bool* wants_training) {
  EnsembleMember member;
  member.name = run;
  std::string folder = run;
  if (absl::EndsWith(run, ".safetensors")) {
    member.init.path = WithoutLinks(run);
    const size_t slash = run.rfind('/');
    folder = slash == std::string::npos ? "." : run.substr(0, slash);
  } else {
    member.train_dir = run;
  }
  const std::string path = KeptTrainingPath(folder);
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    if (training.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--ensemble: member '", run, "': found neither '", path,
          "', which a training writes, nor --training=FILE for such members"));
    }
    *wants_training = true;
    ASSIGN_OR_RETURN(member.training, LoadTrainingSpec(training, sets));
    return member;
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(member.training, ParseTrainingSpec(*text, path, sets));
  return member;
}

}  // namespace

absl::StatusOr<std::vector<EnsembleMember>> ReadMembers(
    const std::vector<std::string>& runs, const std::string& training,
    absl::Span<const std::string> sets) {
  std::vector<EnsembleMember> members;
  bool wants_training = false;
  for (const std::string& run : runs) {
    if (run.empty() || absl::c_count(runs, run) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ensemble: wanted RUN1,RUN2,..., each once, found '",
                       absl::StrJoin(runs, ","), "'"));
    }
    ASSIGN_OR_RETURN(EnsembleMember member,
                     ReadMember(run, training, sets, &wants_training));
    members.push_back(std::move(member));
  }
  if (wants_training || training.empty()) return members;
  return absl::InvalidArgumentError(
      "--training: leave it out, each run of --ensemble keeps its own; --set "
      "overrides fields in all");
}

std::string MessageStart(const EnsembleMember& member) {
  return member.name.empty() ? ""
                             : absl::StrCat("member '", member.name, "': ");
}

absl::Status CheckSameData(const std::vector<EnsembleMember>& members) {
  const EnsembleMember* named = nullptr;
  std::string names;
  const std::string wanted = DataText(members.front());
  for (const EnsembleMember& member : members) {
    if (DataText(member) != wanted) {
      return Differ(members.front(), member, "rows (--set=input... is for all)",
                    absl::StrCat("input {", wanted, "}"),
                    absl::StrCat("input {", DataText(member), "}"));
    }
    if (member.train_dir.empty()) continue;
    const std::string classes =
        absl::StrJoin(ReadClassNames(member.train_dir), ", ");
    if (classes.empty()) continue;
    if (named != nullptr && classes != names) {
      return Differ(*named, member, "classes", names, classes);
    }
    named = &member;
    names = classes;
  }
  return absl::OkStatus();
}

absl::Status CheckSameOutputs(const std::vector<EnsembleMember>& members,
                              absl::Span<const CompiledModel* const> models) {
  const std::string wanted = DescribeOutputs(*models.front());
  for (size_t i = 1; i < models.size(); ++i) {
    const std::string found = DescribeOutputs(*models[i]);
    if (found != wanted) {
      return Differ(members.front(), members[i], "outputs", wanted, found);
    }
  }
  return absl::OkStatus();
}

std::string RowText(const EnsembleMember& member) {
  return absl::StrCat(RowsOf(member.training).ShortDebugString(), " [",
                      absl::StrJoin(member.training.model().input_shape(), ","),
                      "]");
}

}  // namespace muster
