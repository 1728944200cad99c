#include "worker/input/data_set/data_files.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/fingerprint.h"
#include "common/base/utf8.h"

namespace muster {
namespace {

// As many are kept by name, and told.
constexpr size_t kMostKept = 1000;
constexpr size_t kMostTold = 5;

int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

std::string NameBelow(const std::string& dir, absl::string_view path) {
  if (absl::ConsumePrefix(&path, dir)) absl::ConsumePrefix(&path, "/");
  return Utf8OfBytes(path);
}

std::map<std::string, int64_t> SizesByName(const DataFiles& data) {
  std::map<std::string, int64_t> sizes;
  for (const DataFile& file : data.files()) sizes[file.name()] = file.bytes();
  return sizes;
}

bool HasAllNames(const DataFiles& data) {
  return data.num_files() == data.files_size();
}

// A few words on each file that differs.
std::vector<std::string> FileChanges(const DataFiles& before,
                                     const DataFiles& now) {
  std::map<std::string, int64_t> old_sizes = SizesByName(before);
  std::vector<std::string> changes;
  for (const auto& [name, bytes] : SizesByName(now)) {
    const auto old = old_sizes.find(name);
    const std::string shown = EscapeForLog(name);
    if (old == old_sizes.end()) {
      changes.push_back(absl::StrCat(shown, " is new"));
    } else if (old->second != bytes) {
      changes.push_back(
          absl::StrCat(shown, " has ", bytes, " bytes, had ", old->second));
    }
    if (old != old_sizes.end()) old_sizes.erase(old);
  }
  for (const auto& [name, bytes] : old_sizes) {
    changes.push_back(absl::StrCat(EscapeForLog(name), " is gone"));
  }
  return changes;
}

}  // namespace

DataFiles DescribeDataFiles(int64_t examples, const std::string& dir,
                            const std::vector<std::string>& paths) {
  DataFiles data;
  data.set_examples(examples);
  data.set_num_files(static_cast<int64_t>(paths.size()));
  uint64_t fingerprint = 0;
  for (const std::string& path : paths) {
    DataFile file;
    file.set_name(NameBelow(dir, path));
    file.set_bytes(SizeOf(path));
    data.set_bytes(data.bytes() + file.bytes());
    fingerprint = Fingerprint64(
        absl::StrCat(fingerprint, " ", file.bytes(), " ", file.name()));
    if (paths.size() <= kMostKept) *data.add_files() = std::move(file);
  }
  data.set_fingerprint(fingerprint);
  return data;
}

std::string DescribeChange(const DataFiles& before, const DataFiles& now) {
  std::vector<std::string> changes;
  if (before.fingerprint() != now.fingerprint()) {
    if (HasAllNames(before) && HasAllNames(now)) {
      changes = FileChanges(before, now);
    }
    if (changes.empty()) {
      changes.push_back(absl::StrCat(
          "they have ", now.num_files(), " files of ", now.bytes(),
          " bytes, had ", before.num_files(), " of ", before.bytes()));
    }
  }
  if (changes.size() > kMostTold) {
    const size_t more = changes.size() - kMostTold;
    changes.resize(kMostTold);
    changes.push_back(absl::StrCat(more, " other files differ"));
  }
  if (before.examples() != now.examples() && before.examples() > 0 &&
      now.examples() > 0) {
    changes.push_back(absl::StrCat("there are ", now.examples(),
                                   " examples, were ", before.examples()));
  }
  return absl::StrJoin(changes, "; ");
}

}  // namespace muster
