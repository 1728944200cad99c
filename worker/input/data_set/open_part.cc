#include "worker/input/data_set/open_part.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/numbered_parts.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// As many names of a folder's contents are told.
constexpr size_t kMaxListed = 10;

bool HasEnding(absl::string_view name, const PartNames& names) {
  absl::ConsumeSuffix(&name, ".gz");
  // "train.csv-00000-of-00004".
  const std::optional<NumberedPart> part = FindPartNumber(name);
  if (part.has_value() && part->after.empty()) {
    name = absl::string_view(part->before);
    absl::ConsumeSuffix(&name, part->of.substr(0, 1));
  }
  return std::any_of(names.endings.begin(), names.endings.end(),
                     [name](const std::string& ending) {
                       return absl::EndsWithIgnoreCase(name, ending);
                     });
}

bool Begins(absl::string_view name, Split split, const PartNames& names) {
  if (absl::StartsWith(name, PartName(split))) return true;
  return split == Split::kTrain &&
         std::any_of(names.also_train.begin(), names.also_train.end(),
                     [name](const std::string& beginning) {
                       return absl::StartsWith(name, beginning);
                     });
}

// The names in a folder, sorted.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& dir) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("opening a data set: input.dir must be a folder that can "
                     "be read, found '",
                     dir, "': ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status NoFiles(const std::string& dir, Split split,
                     const PartNames& names, std::vector<std::string> found) {
  std::vector<std::string> beginnings = {std::string(PartName(split))};
  if (split == Split::kTrain) {
    beginnings.insert(beginnings.end(), names.also_train.begin(),
                      names.also_train.end());
  }
  const size_t more = found.size() - std::min(found.size(), kMaxListed);
  found.resize(std::min(found.size(), kMaxListed));
  return absl::NotFoundError(absl::StrCat(
      "opening a data set: wanted in '", dir,
      "' files, or folders of files, whose names begin with ",
      absl::StrJoin(beginnings, " or "), " (or are as NAME-", PartName(split),
      "), with the ending ", absl::StrJoin(names.endings, " or "),
      " (.gz may follow); found ",
      found.empty() ? "nothing" : absl::StrJoin(found, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

// OtherNamesOfHalf of what a folder holds.
absl::StatusOr<std::vector<std::string>> OthersOfHalf(
    const std::vector<std::string>& entries, Split split,
    const PartNames& names, bool in_pairs) {
  std::vector<std::string> files;
  for (const std::string& entry : entries) {
    if (HasEnding(entry, names)) files.push_back(entry);
  }
  return OtherNamesOfHalf(files, split, names, in_pairs);
}

// The files of one half of the data set in the folder `dir`, sorted
// by path: those whose names begin with "train" or "test" and have a wanted
// ending, and those with such an ending in folders that begin so.
// Errors, naming the folder: InvalidArgument (no `dir`), NotFound (no such
// folder; no such files, with what was looked for and what there is).
absl::StatusOr<std::vector<std::string>> FindPart(const std::string& dir,
                                                  Split split,
                                                  const PartNames& names,
                                                  bool in_pairs) {
  if (dir.empty()) {
    return absl::InvalidArgumentError(
        "input.dir: wanted the folder of the data set, found nothing");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListFolder(dir));
  std::vector<std::string> paths;
  for (const std::string& entry : entries) {
    if (!Begins(entry, split, names)) continue;
    const std::string path = absl::StrCat(dir, "/", entry);
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      if (HasEnding(entry, names)) paths.push_back(path);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> inner, ListFolder(path));
    for (const std::string& name : inner) {
      if (HasEnding(name, names))
        paths.push_back(absl::StrCat(path, "/", name));
    }
  }
  if (paths.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> others,
                     OthersOfHalf(entries, split, names, in_pairs));
    for (const std::string& name : others) {
      paths.push_back(absl::StrCat(dir, "/", name));
    }
  }
  if (paths.empty()) return NoFiles(dir, split, names, entries);
  return paths;
}

// A file of the half, or a folder for such.
bool IsOfPart(const std::string& path, absl::string_view name, Split split,
              const PartNames& names) {
  std::error_code ignored;
  return Begins(name, split, names) &&
         (HasEnding(name, names) || fs::is_directory(path, ignored));
}

}  // namespace

std::vector<std::string> LabelNames(const DataSetRequest& request) {
  std::vector<std::string> names;
  if (request.run != nullptr && !request.run->label().column().empty()) {
    for (const std::string& name : request.run->label().column()) {
      names.push_back(BytesOfUtf8(name));
    }
    return names;
  }
  const std::string field = request.spec.label_column().empty()
                                ? "label"
                                : request.spec.label_column();
  if (request.labels.kind == LabelKind::kClass) return {field};
  for (const absl::string_view name : absl::StrSplit(field, ',')) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

absl::StatusOr<HalfParts> FindParts(const DataSetType& type,
                                    const DataSetRequest& request) {
  HalfParts half;
  if (type.names.endings.empty()) {
    half.parts.push_back({request.spec.dir()});
    return half;
  }
  ASSIGN_OR_RETURN(std::vector<std::string> found,
                   FindPart(request.spec.dir(), request.split, type.names,
                            /*in_pairs=*/type.pair != nullptr));
  ASSIGN_OR_RETURN(ChosenParts chosen,
                   ChooseParts(std::move(found), request.spec.parts()));
  half.files = std::move(chosen.paths);
  half.remarks = std::move(chosen.remarks);
  if (type.pair != nullptr) {
    ASSIGN_OR_RETURN(half.parts, type.pair(request, half.files));
    return half;
  }
  for (const std::string& file : half.files) half.parts.push_back({file});
  return half;
}

absl::StatusOr<std::string> DescribeHalf(const DataSetType& type,
                                         const DataSetRequest& request) {
  const std::string& dir = request.spec.dir();
  if (type.names.endings.empty() && type.names.is_test == nullptr) {
    return absl::StrCat("input.type \"", request.spec.type(), "\" makes it");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListFolder(dir));
  for (const std::string& entry : entries) {
    const std::string path = absl::StrCat(dir, "/", entry);
    if (type.names.is_test != nullptr
            ? type.names.is_test(entry)
            : IsOfPart(path, entry, request.split, type.names)) {
      return absl::StrCat("'", path, "'");
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> others,
                   OthersOfHalf(entries, request.split, type.names,
                                /*in_pairs=*/type.pair != nullptr));
  return others.empty() ? "" : absl::StrCat("'", dir, "/", others[0], "'");
}

absl::Status AtPlace(const absl::Status& status, absl::string_view place) {
  if (status.ok() || absl::StartsWith(status.message(), "reading ")) {
    return status;
  }
  return Annotate(status, absl::StrCat("reading ", place));
}

}  // namespace muster
