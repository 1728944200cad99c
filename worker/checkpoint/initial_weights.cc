#include "worker/checkpoint/initial_weights.h"

#include <algorithm>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/float_tensor.h"
#include "common/checkpoint/train_dir.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

// Names in one message; any folder may be given.
constexpr size_t kMostNames = 8;

// Everything that is wrong with the file is a wrong flag to its user.
absl::Status AsBadFlag(const absl::Status& status, const std::string& path) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--init_from=", path, ": ", status.message()));
}

std::string ListOf(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kMostNames);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(count),
                    ", ", [](std::string* out, const std::string& name) {
                      absl::StrAppend(out, EscapeForLog(name));
                    });
  if (names.size() > count) {
    absl::StrAppend(&text, " and ", names.size() - count, " more");
  }
  return text;
}

// A clause; "" without names.
std::string SayTables(absl::string_view what,
                      const std::vector<std::string>& names) {
  return names.empty() ? "" : absl::StrCat(what, " ", ListOf(names), "; ");
}

absl::Status NoCheckpoint(const std::vector<std::string>& names) {
  const std::string found = names.empty() ? "nothing" : ListOf(names);
  return absl::InvalidArgumentError(absl::StrCat(
      "looking for the newest checkpoint in the folder: wanted the train_dir "
      "of a training, with folders like ",
      CheckpointName(100), ", or a file of safetensors, found ", found));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::Open(
    FileSystem* file_system, const Options& options,
    absl::Span<const TensorDef> parameters) {
  std::unique_ptr<InitialWeights> weights(new InitialWeights(options));
  RETURN_IF_ERROR(AsBadFlag(weights->OpenSource(file_system), options.path));
  RETURN_IF_ERROR(AsBadFlag(weights->MatchTables(options), options.path));
  RETURN_IF_ERROR(AsBadFlag(weights->Match(options, parameters), options.path));
  RETURN_IF_ERROR(AsBadFlag(weights->CheckValues(parameters), options.path));
  return weights;
}

absl::Status InitialWeights::OpenSource(FileSystem* file_system) {
  const absl::StatusOr<std::vector<std::string>> names =
      file_system->List(path_);
  if (names.ok()) return OpenFolder(file_system, *names);
  ASSIGN_OR_RETURN(file_, SafetensorsReader::Open(file_system, path_));
  reader_ = file_.get();
  return absl::OkStatus();
}

absl::Status InitialWeights::OpenFolder(FileSystem* file_system,
                                        const std::vector<std::string>& names) {
  const absl::string_view folder = absl::StripSuffix(path_, "/");
  const absl::string_view name = folder.substr(folder.rfind('/') + 1);
  if (ParseCheckpointName(name).has_value()) {
    ASSIGN_OR_RETURN(checkpoint_, CheckpointReader::Open(file_system, path_));
  } else {
    const bool is_train_dir =
        absl::c_any_of(names, [](const std::string& entry) {
          return ParseCheckpointName(entry).has_value();
        });
    if (!is_train_dir) return NoCheckpoint(names);
    ASSIGN_OR_RETURN(CheckpointReader::Newest newest,
                     CheckpointReader::OpenNewest(file_system, path_));
    checkpoint_ = std::move(newest.reader);
    remarks_ = std::move(newest.warnings);
  }
  reader_ = &checkpoint_->parameters();
  source_ = checkpoint_->path();
  remarks_.push_back(absl::StrCat("takes ", source_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::OpenForRun(
    FileSystem* file_system, const Options& options,
    absl::Span<const TensorDef> parameters, const std::string& train_dir,
    const Reporter& reporter) {
  if (options.path.empty()) return nullptr;
  if (!train_dir.empty()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                     ListCheckpoints(file_system, train_dir));
    if (!steps.empty()) {
      reporter.Info(absl::StrCat("--init_from=", options.path,
                                 " is not used: train_dir ", train_dir,
                                 " has a checkpoint of step ", steps.front(),
                                 ", and the training there goes on"));
      return nullptr;
    }
  }
  auto weights = Open(file_system, options, parameters);
  if (!weights.ok()) return weights;
  for (const std::string& remark : (*weights)->remarks()) {
    reporter.Info(absl::StrCat("--init_from: ", remark));
  }
  return weights;
}

absl::Status InitialWeights::MatchTables(const Options& options) {
  ASSIGN_OR_RETURN(rows_, GivenRows::Create(tables_, checkpoint_ != nullptr
                                                         ? checkpoint_->tables()
                                                         : reader_));
  std::vector<std::string> extra;
  if (checkpoint_ != nullptr) extra = TablesThatModelLacks();
  if (!options.partial && rows_->missing().size() + extra.size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        SayTables("it lacks the model's tables", rows_->missing()),
        SayTables("the model lacks its tables", extra),
        "pass --init_from_partial to use what fits; a table that it lacks then "
        "begins without rows"));
  }
  for (const std::string& name : rows_->missing()) {
    remarks_.push_back(
        absl::StrCat("not in the file, begins without rows: table '",
                     EscapeForLog(name), "'"));
  }
  for (const std::string& name : extra) {
    remarks_.push_back(absl::StrCat("not in the model, passed over: table '",
                                    EscapeForLog(name), "'"));
  }
  return absl::OkStatus();
}

std::vector<std::string> InitialWeights::TablesThatModelLacks() const {
  std::vector<std::string> names;
  for (const SavedTable& saved : checkpoint_->manifest().tables()) {
    const std::string& name = saved.definition().name();
    const bool is_known = absl::c_any_of(
        tables_,
        [&name](const TableDef& table) { return table.name() == name; });
    if (!is_known) names.push_back(name);
  }
  return names;
}

absl::Status InitialWeights::Match(const Options& options,
                                   absl::Span<const TensorDef> parameters) {
  std::vector<SourceTensor> tensors;
  for (const SafetensorsEntry& entry : reader_->entries()) {
    // A checkpoint has rows in a file of their own.
    if (checkpoint_ == nullptr && rows_->tensors().count(entry.name) > 0) {
      continue;
    }
    tensors.push_back({entry.name, entry.shape, entry.format_dtype});
  }
  ASSIGN_OR_RETURN(const TensorMatch match,
                   MatchTensors(tensors, parameters, options, "the file"));
  for (const int source : match.sources) {
    tensors_.push_back(source < 0 ? "" : tensors[source].name);
  }
  remarks_.insert(remarks_.end(), match.remarks.begin(), match.remarks.end());
  return absl::OkStatus();
}

absl::Status InitialWeights::CheckValues(
    absl::Span<const TensorDef> parameters) const {
  std::vector<float> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (tensors_[i].empty()) continue;
    values.resize(static_cast<size_t>(NumElements(parameters[i].shape())));
    RETURN_IF_ERROR(Read(i, absl::MakeSpan(values)));
  }
  return absl::OkStatus();
}

int InitialWeights::num_tensors() const {
  return static_cast<int>(absl::c_count_if(
      tensors_, [](const std::string& name) { return !name.empty(); }));
}

absl::Status InitialWeights::Read(size_t parameter,
                                  absl::Span<float> dst) const {
  if (tensors_[parameter].empty()) return absl::OkStatus();
  return ReadFloats(*reader_, tensors_[parameter], dst);
}

}  // namespace muster
