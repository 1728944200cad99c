#include "worker/checkpoint/initial_weights.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/float_tensor.h"
#include "common/checkpoint/train_dir.h"
#include "common/tensor/shape.h"
#include "worker/checkpoint/name_map.h"

namespace muster {
namespace {

// Names in one message; a wrong file may have thousands.
constexpr size_t kMostNames = 8;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", absl::CHexEscape(name), "'");
}

std::string List(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kMostNames);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(count),
                    ", ", [](std::string* out, const std::string& name) {
                      absl::StrAppend(out, Quoted(name));
                    });
  if (names.size() > count) {
    absl::StrAppend(&text, " and ", names.size() - count, " more");
  }
  return text;
}

// Everything that is wrong with the file is a wrong flag to its user.
absl::Status AsBadFlag(const absl::Status& status, const std::string& path) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--init_from=", path, ": ", status.message()));
}

absl::Status CheckShape(const SafetensorsEntry& entry,
                        const TensorDef& parameter) {
  const std::string wanted =
      absl::StrCat("[", absl::StrJoin(parameter.shape(), ", "), "]");
  if (absl::c_equal(entry.shape.dims(), parameter.shape()) &&
      IsFloatDtype(entry.format_dtype)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", Quoted(entry.name), ": parameter '", parameter.name(),
      "' wants shape ", wanted, " of F32 (or F16, BF16, F64), the file has ",
      entry.shape.ToString(), " of ", entry.format_dtype));
}

// The file's tensors by the names that they are to have.
using EntriesByName = std::map<std::string, const SafetensorsEntry*>;

absl::StatusOr<EntriesByName> MapNames(
    const std::vector<SafetensorsEntry>& entries,
    const std::vector<std::string>& name_map) {
  ASSIGN_OR_RETURN(const NameMap names, NameMap::Create(name_map));
  EntriesByName by_name;
  for (const SafetensorsEntry& entry : entries) {
    const std::optional<std::string> name = names.Map(entry.name);
    if (!name.has_value()) continue;
    const auto [it, is_new] = by_name.emplace(*name, &entry);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("both ", Quoted(it->second->name), " and ",
                     Quoted(entry.name), " are to be ", Quoted(*name)));
  }
  return by_name;
}

// Without --init_from_partial both lists must be empty.
absl::Status CheckComplete(const std::vector<std::string>& missing,
                           const std::vector<std::string>& extra) {
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::string text;
  if (!missing.empty()) {
    absl::StrAppend(&text, "it lacks ", missing.size(),
                    " parameters of the model: ", List(missing), "; ");
  }
  if (!extra.empty()) {
    absl::StrAppend(&text, "the model lacks ", extra.size(),
                    " of its tensors: ", List(extra), "; ");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(text,
                   "rename or leave out tensors with --init_from_map, or "
                   "pass --init_from_partial to use what fits"));
}

// InitialWeights::remarks.
std::vector<std::string> Remarks(const std::vector<std::string>& missing,
                                 const std::vector<std::string>& extra) {
  std::vector<std::string> remarks;
  for (const std::string& name : missing) {
    remarks.push_back(
        absl::StrCat("not in the file, initialized by seed: ", name));
  }
  for (const std::string& name : extra) {
    remarks.push_back(
        absl::StrCat("not in the model, passed over: ", Quoted(name)));
  }
  return remarks;
}

}  // namespace

InitialWeights::InitialWeights(std::string path,
                               std::unique_ptr<SafetensorsReader> reader)
    : path_(std::move(path)), reader_(std::move(reader)) {}

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::Open(
    FileSystem* file_system, const Options& options,
    absl::Span<const TensorDef> parameters) {
  absl::StatusOr<std::unique_ptr<SafetensorsReader>> reader =
      SafetensorsReader::Open(file_system, options.path);
  if (!reader.ok()) return AsBadFlag(reader.status(), options.path);
  std::unique_ptr<InitialWeights> weights(
      new InitialWeights(options.path, *std::move(reader)));
  RETURN_IF_ERROR(AsBadFlag(weights->Match(options, parameters), options.path));
  RETURN_IF_ERROR(AsBadFlag(weights->CheckValues(parameters), options.path));
  return weights;
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

absl::Status InitialWeights::Match(const Options& options,
                                   absl::Span<const TensorDef> parameters) {
  ASSIGN_OR_RETURN(EntriesByName by_name,
                   MapNames(reader_->entries(), options.name_map));
  std::vector<std::string> missing;
  sources_.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto it = by_name.find(parameters[i].name());
    if (it == by_name.end()) {
      missing.push_back(parameters[i].name());
      continue;
    }
    RETURN_IF_ERROR(CheckShape(*it->second, parameters[i]));
    sources_[i] = it->second->name;
    by_name.erase(it);
  }
  std::vector<std::string> extra;
  for (const auto& [name, entry] : by_name) extra.push_back(entry->name);
  if (!options.partial) return CheckComplete(missing, extra);
  if (missing.size() == parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has none of the model's parameters; its tensors are ",
                     List(extra)));
  }
  remarks_ = Remarks(missing, extra);
  return absl::OkStatus();
}

absl::Status InitialWeights::CheckValues(
    absl::Span<const TensorDef> parameters) const {
  std::vector<float> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (sources_[i].empty()) continue;
    values.resize(static_cast<size_t>(NumElements(parameters[i].shape())));
    RETURN_IF_ERROR(Read(i, absl::MakeSpan(values)));
  }
  return absl::OkStatus();
}

int InitialWeights::num_tensors() const {
  return static_cast<int>(absl::c_count_if(
      sources_, [](const std::string& name) { return !name.empty(); }));
}

absl::Status InitialWeights::Read(size_t parameter,
                                  absl::Span<float> dst) const {
  if (sources_[parameter].empty()) return absl::OkStatus();
  return ReadFloats(*reader_, sources_[parameter], dst);
}

}  // namespace muster
