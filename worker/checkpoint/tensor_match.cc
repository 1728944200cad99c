#include "worker/checkpoint/tensor_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/float_tensor.h"
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

absl::Status CheckShape(const SourceTensor& tensor, const TensorDef& parameter,
                        const std::string& holder) {
  const std::string wanted =
      absl::StrCat("[", absl::StrJoin(parameter.shape(), ", "), "]");
  if (absl::c_equal(tensor.shape.dims(), parameter.shape()) &&
      IsFloatDtype(tensor.dtype)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", Quoted(tensor.name), ": parameter '", parameter.name(),
      "' wants shape ", wanted, " of F32 (or F16, BF16, F64), ", holder,
      " has ", tensor.shape.ToString(), " of ", tensor.dtype));
}

// The tensors by the names that they are to have.
using IndexByName = std::map<std::string, int>;

absl::StatusOr<IndexByName> MapNames(absl::Span<const SourceTensor> tensors,
                                     const std::vector<std::string>& name_map) {
  ASSIGN_OR_RETURN(const NameMap names, NameMap::Create(name_map));
  IndexByName by_name;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::optional<std::string> name = names.Map(tensors[i].name);
    if (!name.has_value()) continue;
    const auto [it, is_new] = by_name.emplace(*name, static_cast<int>(i));
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("both ", Quoted(tensors[it->second].name), " and ",
                     Quoted(tensors[i].name), " are to be ", Quoted(*name)));
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

// TensorMatch::remarks.
std::vector<std::string> Remarks(const std::vector<std::string>& missing,
                                 const std::vector<std::string>& extra,
                                 const std::string& holder) {
  std::vector<std::string> remarks;
  for (const std::string& name : missing) {
    remarks.push_back(
        absl::StrCat("not in ", holder, ", initialized by seed: ", name));
  }
  for (const std::string& name : extra) {
    remarks.push_back(
        absl::StrCat("not in the model, passed over: ", Quoted(name)));
  }
  return remarks;
}

}  // namespace

int TensorMatch::num_tensors() const {
  return static_cast<int>(
      absl::c_count_if(sources, [](int source) { return source >= 0; }));
}

absl::StatusOr<TensorMatch> MatchTensors(absl::Span<const SourceTensor> tensors,
                                         absl::Span<const TensorDef> parameters,
                                         const MatchOptions& options,
                                         const std::string& holder) {
  ASSIGN_OR_RETURN(IndexByName by_name, MapNames(tensors, options.name_map));
  TensorMatch match;
  match.sources.assign(parameters.size(), -1);
  std::vector<std::string> missing;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto it = by_name.find(parameters[i].name());
    if (it == by_name.end()) {
      missing.push_back(parameters[i].name());
      continue;
    }
    RETURN_IF_ERROR(CheckShape(tensors[it->second], parameters[i], holder));
    match.sources[i] = it->second;
    by_name.erase(it);
  }
  std::vector<std::string> extra;
  for (const auto& [name, index] : by_name)
    extra.push_back(tensors[index].name);
  if (!options.partial) {
    RETURN_IF_ERROR(CheckComplete(missing, extra));
    return match;
  }
  if (missing.size() == parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has none of the model's parameters; its tensors are ",
                     List(extra)));
  }
  match.remarks = Remarks(missing, extra, holder);
  return match;
}

}  // namespace muster
