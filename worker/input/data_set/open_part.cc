#include "worker/input/data_set/open_part.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status CheckColumns(const Part& part, absl::Span<const Column> known) {
  const std::vector<Column>& found = part.columns();
  const size_t common = std::min(found.size(), known.size());
  for (size_t i = 0; i < common; ++i) {
    if (found[i].name != known[i].name ||
        found[i].num_classes != known[i].num_classes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: '", part.files().back(), "' differs from the ",
          "first file from column ", i + 1, " on: wanted '", known[i].name, "'",
          found[i].name != known[i].name
              ? absl::StrCat(", found '", found[i].name, "'")
              : absl::StrCat(" of ", known[i].num_classes, " classes, found ",
                             found[i].num_classes,
                             "; keep them in two folders")));
    }
  }
  if (found.size() == known.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: '", part.files().back(), "': wanted the ",
      known.size(), " columns of the first file, found ", found.size()));
}

}  // namespace

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

absl::StatusOr<std::unique_ptr<Part>> OpenPartLike(
    OpenPart* open, const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> known) {
  ASSIGN_OR_RETURN(std::unique_ptr<Part> part, open(request, files, known));
  if (!known.empty() && !part->columns().empty()) {
    RETURN_IF_ERROR(CheckColumns(*part, known));
  }
  return part;
}

absl::Status AtPlace(const absl::Status& status, absl::string_view place) {
  if (status.ok() || absl::StartsWith(status.message(), "reading ")) {
    return status;
  }
  return Annotate(status, absl::StrCat("reading ", place));
}

}  // namespace muster
