#include "worker/checkpoint/tensor_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
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

bool Fits(const SourceTensor& tensor, const TensorDef& parameter) {
  return absl::c_equal(tensor.shape.dims(), parameter.shape()) &&
         IsFloatDtype(tensor.dtype);
}

std::string DescribeMisfit(const SourceTensor& tensor,
                           const TensorDef& parameter,
                           const std::string& holder) {
  return absl::StrCat(
      "tensor ", Quoted(tensor.name), ": parameter '", parameter.name(),
      "' wants shape [", absl::StrJoin(parameter.shape(), ", "),
      "] of F32 (or F16, BF16, F64), ", holder, " has ",
      tensor.shape.ToString(), " of ", absl::CHexEscape(tensor.dtype));
}

std::vector<std::string> NamesOf(absl::Span<const SourceTensor> tensors) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

// The names that tensors are to have: which tensor each is for, and those of
// tensors that are left out.
struct MappedNames {
  std::map<std::string, int> tensors;
  std::set<std::string> left_out;
};

absl::StatusOr<MappedNames> MapNames(absl::Span<const SourceTensor> tensors,
                                     const std::vector<std::string>& name_map) {
  ASSIGN_OR_RETURN(const NameMap names, NameMap::Create(name_map));
  RETURN_IF_ERROR(names.CheckMatches(NamesOf(tensors)));
  MappedNames mapped;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto [name, left_out] = names.Map(tensors[i].name);
    if (left_out) {
      mapped.left_out.insert(name);
      continue;
    }
    const auto [it, is_new] = mapped.tensors.emplace(name, static_cast<int>(i));
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("both ", Quoted(tensors[it->second].name), " and ",
                     Quoted(tensors[i].name), " are to be ", Quoted(name)));
  }
  return mapped;
}

// How parameters and tensors stand to each other.
struct Pairs {
  // By parameter; -1 for one that has no tensor.
  std::vector<int> sources;
  // Parameters whose tensors do not fit.
  std::vector<size_t> misfits;
  // Parameters without a tensor: one that the map leaves out, or none at all.
  std::vector<std::string> left_out;
  std::vector<std::string> missing;
  // Tensors without a parameter.
  std::vector<std::string> extra;
};

Pairs PairUp(absl::Span<const SourceTensor> tensors,
             absl::Span<const TensorDef> parameters, MappedNames names) {
  Pairs pairs;
  pairs.sources.assign(parameters.size(), -1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name();
    const auto it = names.tensors.find(name);
    if (it == names.tensors.end()) {
      auto& without =
          names.left_out.count(name) > 0 ? pairs.left_out : pairs.missing;
      without.push_back(name);
      continue;
    }
    pairs.sources[i] = it->second;
    if (!Fits(tensors[it->second], parameters[i])) pairs.misfits.push_back(i);
    names.tensors.erase(it);
  }
  for (const auto& [name, index] : names.tensors) {
    pairs.extra.push_back(tensors[index].name);
  }
  return pairs;
}

// The flags under which the layers of the misfits start from the seed; "" if
// there are none.
std::string AnewFlags(absl::Span<const SourceTensor> tensors,
                      const Pairs& pairs,
                      const std::vector<std::string>& name_map) {
  std::vector<std::string> unwanted;
  for (const size_t parameter : pairs.misfits) {
    unwanted.push_back(tensors[pairs.sources[parameter]].name);
  }
  std::vector<std::string> rules =
      RulesThatLeaveOut(unwanted, NamesOf(tensors));
  if (rules.empty()) return "";
  // The first rule that fits decides.
  rules.insert(rules.end(), name_map.begin(), name_map.end());
  return absl::StrJoin(
      rules, " ", [](std::string* out, const std::string& rule) {
        absl::StrAppend(out, "--init_from_map='",
                        absl::StrReplaceAll(rule, {{"'", "'\\''"}}), "'");
      });
}

absl::Status CheckFits(absl::Span<const SourceTensor> tensors,
                       absl::Span<const TensorDef> parameters,
                       const Pairs& pairs, const MatchOptions& options,
                       const std::string& holder) {
  if (pairs.misfits.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const size_t i : pairs.misfits) {
    if (lines.size() == kMostNames) {
      lines.push_back(
          absl::StrCat("and ", pairs.misfits.size() - kMostNames, " more"));
      break;
    }
    lines.push_back(
        DescribeMisfit(tensors[pairs.sources[i]], parameters[i], holder));
  }
  const bool is_other_model = pairs.misfits.size() > kMostNames;
  const auto num_matched =
      absl::c_count_if(pairs.sources, [](int source) { return source >= 0; });
  const bool nothing_fits =
      num_matched == static_cast<int64_t>(pairs.misfits.size());
  if (nothing_fits) lines.push_back("so nothing of it fits this model");
  const std::string flags = options.whole || is_other_model || nothing_fits
                                ? ""
                                : AnewFlags(tensors, pairs, options.name_map);
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(lines, "; "),
      flags.empty() ? "" : "; to begin anew with what does not fit: ", flags,
      flags.empty() || options.name_map.empty()
          ? ""
          : " (in this order, in place of those given)"));
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
std::vector<std::string> Remarks(const Pairs& pairs,
                                 const std::string& holder) {
  std::vector<std::string> remarks;
  for (const std::string& name : pairs.left_out) {
    remarks.push_back(absl::StrCat(
        "left out by --init_from_map, initialized by seed: ", name));
  }
  for (const std::string& name : pairs.missing) {
    remarks.push_back(
        absl::StrCat("not in ", holder, ", initialized by seed: ", name));
  }
  for (const std::string& name : pairs.extra) {
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
  ASSIGN_OR_RETURN(MappedNames names, MapNames(tensors, options.name_map));
  const Pairs pairs = PairUp(tensors, parameters, std::move(names));
  RETURN_IF_ERROR(CheckFits(tensors, parameters, pairs, options, holder));
  if (options.whole && !pairs.left_out.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--init_from_map leaves out ", List(pairs.left_out),
        ": a model that is used as it is needs all its parameters"));
  }
  if (!options.partial) {
    RETURN_IF_ERROR(CheckComplete(pairs.missing, pairs.extra));
  }
  TensorMatch match{pairs.sources, Remarks(pairs, holder)};
  if (match.num_tensors() == 0 && !parameters.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has none of the model's parameters",
        pairs.left_out.empty() ? ""
                               : " that --init_from_map does not leave out",
        "; its tensors are ", List(NamesOf(tensors))));
  }
  return match;
}

}  // namespace muster
