#include "worker/input/data_set/open_part.h"

#include <algorithm>
#include <filesystem>
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

namespace muster {
namespace {

namespace fs = std::filesystem;

// As many names of a folder's contents are told.
constexpr size_t kMaxListed = 10;

// Without "-00000-of-00004".
absl::string_view WithoutShard(absl::string_view name) {
  const size_t of = name.rfind("-of-");
  if (of == absl::string_view::npos) return name;
  const size_t dash = name.rfind('-', of - 1);
  if (of == 0 || dash == absl::string_view::npos) return name;
  const absl::string_view first = name.substr(dash + 1, of - dash - 1);
  const absl::string_view second = name.substr(of + 4);
  const auto is_number = [](absl::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  };
  return is_number(first) && is_number(second) ? name.substr(0, dash) : name;
}

bool HasEnding(absl::string_view name, const PartNames& names) {
  absl::ConsumeSuffix(&name, ".gz");
  name = WithoutShard(name);
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
      absl::StrJoin(beginnings, " or "), ", with the ending ",
      absl::StrJoin(names.endings, " or "), " (.gz may follow); found ",
      found.empty() ? "nothing" : absl::StrJoin(found, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

// The files of one half of the data set in the folder `dir`, sorted
// by path: those whose names begin with "train" or "test" and have a wanted
// ending, and those with such an ending in folders that begin so.
// Errors, naming the folder: InvalidArgument (no `dir`), NotFound (no such
// folder; no such files, with what was looked for and what there is).
absl::StatusOr<std::vector<std::string>> FindPart(const std::string& dir,
                                                  Split split,
                                                  const PartNames& names) {
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
  if (paths.empty()) return NoFiles(dir, split, names, entries);
  return paths;
}

}  // namespace

absl::string_view PartName(Split split) {
  return split == Split::kTrain ? "train" : "test";
}

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
  ASSIGN_OR_RETURN(half.files,
                   FindPart(request.spec.dir(), request.split, type.names));
  if (type.pair != nullptr) {
    ASSIGN_OR_RETURN(half.parts, type.pair(request, half.files));
    return half;
  }
  for (const std::string& file : half.files) half.parts.push_back({file});
  return half;
}

absl::Status AtPlace(const absl::Status& status, absl::string_view place) {
  if (status.ok() || absl::StartsWith(status.message(), "reading ")) {
    return status;
  }
  return Annotate(status, absl::StrCat("reading ", place));
}

}  // namespace muster
