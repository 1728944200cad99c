#include "worker/input/file/npy_header.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxTextBytes = 64 * 1024;
// NumPy's own limit.
constexpr size_t kMaxRank = 32;
constexpr size_t kShownBytes = 80;

struct TypeName {
  absl::string_view name;
  NpyType type;
  int64_t bytes;
};
constexpr TypeName kTypes[] = {
    {"<f4", NpyType::kF4, 4}, {"<f8", NpyType::kF8, 8},
    {"|i1", NpyType::kI1, 1}, {"<i2", NpyType::kI2, 2},
    {"<i4", NpyType::kI4, 4}, {"<i8", NpyType::kI8, 8},
    {"|u1", NpyType::kU1, 1}, {"<u2", NpyType::kU2, 2},
    {"<u4", NpyType::kU4, 4}, {"<u8", NpyType::kU8, 8},
    {"|b1", NpyType::kB1, 1}};

const TypeName& EntryOf(NpyType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry;
  }
  return kTypes[0];
}

absl::StatusOr<NpyType> ParseType(absl::string_view name) {
  for (const TypeName& entry : kTypes) {
    if (entry.name == name) return entry.type;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the type '", EscapeForLog(name, kShownBytes), "' is not read; wanted ",
      absl::StrJoin(kTypes, ", ",
                    [](std::string* out, const TypeName& entry) {
                      absl::StrAppend(out, entry.name);
                    }),
      ": convert it by astype"));
}

// Walks through the few forms of a Python literal that NumPy writes.
class Literal {
 public:
  explicit Literal(absl::string_view text) : rest_(text) {}

  // Takes `token` if it comes next.
  bool Take(absl::string_view token) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, token);
  }

  absl::Status Expect(absl::string_view token) {
    if (Take(token)) return absl::OkStatus();
    return Unexpected(absl::StrCat("'", token, "'"));
  }

  // A string without escapes, in either quotes.
  absl::StatusOr<absl::string_view> String() {
    SkipSpace();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1)
                                                     : absl::string_view::npos;
    if (end == absl::string_view::npos) return Unexpected("a string");
    const absl::string_view value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return value;
  }

  absl::StatusOr<bool> Bool() {
    if (Take("True")) return true;
    RETURN_IF_ERROR(Expect("False"));
    return false;
  }

  // A tuple of whole numbers: (), (3,), (3, 4).
  absl::StatusOr<std::vector<int64_t>> Tuple() {
    RETURN_IF_ERROR(Expect("("));
    std::vector<int64_t> values;
    while (!Take(")")) {
      if (values.size() == kMaxRank) return Unexpected("at most 32 dimensions");
      ASSIGN_OR_RETURN(values.emplace_back(), Number());
      if (Take(",")) continue;
      RETURN_IF_ERROR(Expect(")"));
      break;
    }
    return values;
  }

  absl::Status ExpectEnd() {
    SkipSpace();
    return rest_.empty() ? absl::OkStatus() : Unexpected("the end");
  }

  absl::Status Unexpected(absl::string_view wanted) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is damaged: wanted ", wanted, ", found '",
                     EscapeForLog(rest_, kShownBytes), "'"));
  }

 private:
  void SkipSpace() {
    const size_t next = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(next == absl::string_view::npos ? rest_.size() : next);
  }

  absl::StatusOr<int64_t> Number() {
    SkipSpace();
    const size_t end =
        std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    int64_t value;
    if (!absl::SimpleAtoi(rest_.substr(0, end), &value)) {
      return Unexpected("a dimension");
    }
    rest_.remove_prefix(end);
    return value;
  }

  absl::string_view rest_;
};

// The three keys, as they come.
struct Fields {
  std::optional<absl::string_view> type;
  std::optional<bool> is_fortran;
  std::optional<std::vector<int64_t>> shape;
};

absl::Status ParseField(Literal& literal, Fields& fields) {
  ASSIGN_OR_RETURN(const absl::string_view key, literal.String());
  RETURN_IF_ERROR(literal.Expect(":"));
  if (key == "descr" && !fields.type.has_value()) {
    if (literal.Take("[")) {
      return absl::InvalidArgumentError(
          "arrays of records are not read; wanted one type for all elements");
    }
    ASSIGN_OR_RETURN(fields.type, literal.String());
  } else if (key == "fortran_order" && !fields.is_fortran.has_value()) {
    ASSIGN_OR_RETURN(fields.is_fortran, literal.Bool());
  } else if (key == "shape" && !fields.shape.has_value()) {
    ASSIGN_OR_RETURN(fields.shape, literal.Tuple());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is damaged: unknown or repeated key '",
                     EscapeForLog(key, kShownBytes), "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> CheckedHeader(Fields fields) {
  if (!fields.type.has_value() || !fields.is_fortran.has_value() ||
      !fields.shape.has_value()) {
    return absl::InvalidArgumentError(
        "the header is damaged: wanted descr, fortran_order and shape");
  }
  if (*fields.is_fortran) {
    return absl::InvalidArgumentError(
        "fortran_order is True: the rows do not lie together; save "
        "numpy.ascontiguousarray of the array");
  }
  NpyHeader header;
  ASSIGN_OR_RETURN(header.type, ParseType(*fields.type));
  header.shape = *std::move(fields.shape);
  bool has_values = !header.shape.empty();
  for (const int64_t dim : header.shape) has_values = has_values && dim > 0;
  if (has_values) return header;
  return absl::InvalidArgumentError(
      absl::StrCat("wanted rows of values, found the shape (",
                   absl::StrJoin(header.shape, ", "), ")"));
}

}  // namespace

absl::string_view NpyTypeName(NpyType type) { return EntryOf(type).name; }

int64_t NpyTypeBytes(NpyType type) { return EntryOf(type).bytes; }

absl::StatusOr<NpyTextPlace> ParseNpyPrefix(absl::string_view prefix) {
  const auto byte = [prefix](size_t i) {
    return static_cast<int64_t>(static_cast<uint8_t>(prefix[i]));
  };
  if (!absl::StartsWith(prefix, kMagic)) {
    return absl::InvalidArgumentError(
        "not an npy file: it does not begin with \\x93NUMPY");
  }
  if (prefix.size() < kNpyPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file is cut short: wanted a header, found ",
                     prefix.size(), " bytes"));
  }
  const int64_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted version 1.0, 2.0 or 3.0 of the npy format, found ",
                     major, ".", byte(7)));
  }
  NpyTextPlace place = {10, byte(8) | byte(9) << 8};
  if (major > 1) place = {12, place.size | byte(10) << 16 | byte(11) << 24};
  if (place.size <= kMaxTextBytes) return place;
  return absl::InvalidArgumentError(
      absl::StrCat("wanted a header of at most ", kMaxTextBytes,
                   " bytes, found one of ", place.size));
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) {
  Literal literal(text);
  Fields fields;
  RETURN_IF_ERROR(literal.Expect("{"));
  while (!literal.Take("}")) {
    RETURN_IF_ERROR(ParseField(literal, fields));
    if (literal.Take(",")) continue;
    RETURN_IF_ERROR(literal.Expect("}"));
    break;
  }
  RETURN_IF_ERROR(literal.ExpectEnd());
  return CheckedHeader(std::move(fields));
}

}  // namespace muster
