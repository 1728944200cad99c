#include "worker/input/file/npy_file.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/file/little_endian.h"
#include "worker/input/file/row_major.h"

namespace muster {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
// The magic string, the version and the length of the text in versions 2 and
// 3; version 1 has two bytes less.
constexpr int64_t kPrefixBytes = 12;
constexpr int64_t kMaxTextBytes = 64 * 1024;
// NumPy's own limit.
constexpr size_t kMaxRank = 32;
constexpr size_t kShownBytes = 80;
// Converted at once, on the stack.
constexpr int64_t kChunkBytes = 16 * 1024;

// By NpyType. The last character is the bytes of an element.
constexpr absl::string_view kTypeNames[] = {"<f4", "<f8", "|i1", "<i2",
                                            "<i4", "<i8", "|u1", "<u2",
                                            "<u4", "<u8", "|b1"};

absl::string_view NameOf(NpyType type) {
  return kTypeNames[static_cast<int>(type)];
}
int64_t BytesOf(NpyType type) { return NameOf(type).back() - '0'; }

bool IsFloat(NpyType type) {
  return type == NpyType::kF4 || type == NpyType::kF8;
}

absl::StatusOr<NpyType> ParseType(absl::string_view name) {
  const auto* const found =
      std::find(std::begin(kTypeNames), std::end(kTypeNames), name);
  if (found != std::end(kTypeNames)) {
    return static_cast<NpyType>(found - std::begin(kTypeNames));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the type '", EscapeForLog(name, kShownBytes), "' is not read; wanted ",
      absl::StrJoin(kTypeNames, ", "), ": convert it by astype"));
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

  // A tuple of whole numbers: (), (3,), (3, 4).
  absl::StatusOr<std::vector<int64_t>> Tuple() {
    RETURN_IF_ERROR(Expect("("));
    std::vector<int64_t> values;
    while (!Take(")")) {
      if (values.size() == kMaxRank) return Unexpected("at most 32 dimensions");
      SkipSpace();
      const size_t end =
          std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      if (!absl::SimpleAtoi(rest_.substr(0, end), &values.emplace_back())) {
        return Unexpected("a dimension");
      }
      rest_.remove_prefix(end);
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

 private:
  absl::Status Unexpected(absl::string_view wanted) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is damaged: wanted ", wanted, ", found '",
                     EscapeForLog(rest_, kShownBytes), "'"));
  }

  void SkipSpace() {
    const size_t next = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(next == absl::string_view::npos ? rest_.size() : next);
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
    fields.is_fortran = literal.Take("True");
    if (!*fields.is_fortran) return literal.Expect("False");
  } else if (key == "shape" && !fields.shape.has_value()) {
    ASSIGN_OR_RETURN(fields.shape, literal.Tuple());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is damaged: unknown or repeated key '",
                     EscapeForLog(key, kShownBytes), "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const Fields& fields) {
  if (!fields.type.has_value() || !fields.is_fortran.has_value() ||
      !fields.shape.has_value()) {
    return absl::InvalidArgumentError(
        "the header is damaged: wanted descr, fortran_order and shape");
  }
  const std::vector<int64_t>& shape = *fields.shape;
  if (!shape.empty() && *std::min_element(shape.begin(), shape.end()) > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("wanted rows of values, found the shape (",
                   absl::StrJoin(shape, ", "), ")"));
}

// The place of the header's text in the file, which begins with `prefix`.
struct TextPlace {
  int64_t begin = 0;
  int64_t size = 0;
};

absl::StatusOr<TextPlace> FindText(absl::Span<const uint8_t> prefix) {
  const absl::string_view text(reinterpret_cast<const char*>(prefix.data()),
                               prefix.size());
  if (!absl::StartsWith(text, kMagic)) {
    return absl::InvalidArgumentError(
        "not an npy file: it does not begin with \\x93NUMPY");
  }
  if (prefix.size() < kPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file is cut short: wanted a header, found ",
                     prefix.size(), " bytes"));
  }
  const int major = prefix[6];
  if (major < 1 || major > 3 || prefix[7] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted version 1.0, 2.0 or 3.0 of the npy format, found ",
                     major, ".", prefix[7]));
  }
  const int64_t length_bytes = major == 1 ? 2 : 4;
  const TextPlace place = {
      8 + length_bytes,
      static_cast<int64_t>(LittleEndianAt(prefix, 8, length_bytes))};
  if (place.size <= kMaxTextBytes) return place;
  return absl::InvalidArgumentError(
      absl::StrCat("wanted a header of at most ", kMaxTextBytes,
                   " bytes, found one of ", place.size));
}

// Converts `count` elements of type T at `src`, in the byte order of this
// machine, which is little-endian on all that we build for.
template <typename T, typename Dst>
void Convert(const uint8_t* src, int64_t count, Dst* dst) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      dst[i] = static_cast<Dst>(src[i] != 0);
    } else {
      T value;
      std::memcpy(&value, src + i * sizeof(T), sizeof(T));
      dst[i] = static_cast<Dst>(value);
    }
  }
}

template <typename Dst>
void ConvertAll(NpyType type, const uint8_t* src, int64_t count, Dst* dst) {
  using Converter = void (*)(const uint8_t*, int64_t, Dst*);
  // By NpyType.
  static constexpr Converter kConverters[] = {
      &Convert<float, Dst>,    &Convert<double, Dst>,   &Convert<int8_t, Dst>,
      &Convert<int16_t, Dst>,  &Convert<int32_t, Dst>,  &Convert<int64_t, Dst>,
      &Convert<uint8_t, Dst>,  &Convert<uint16_t, Dst>, &Convert<uint32_t, Dst>,
      &Convert<uint64_t, Dst>, &Convert<bool, Dst>};
  kConverters[static_cast<int>(type)](src, count, dst);
}

}  // namespace

absl::StatusOr<NpyFile::Header> NpyFile::ParseHeader(absl::string_view text) {
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
  RETURN_IF_ERROR(CheckFields(fields));
  ASSIGN_OR_RETURN(const NpyType type, ParseType(*fields.type));
  return Header{type, *std::move(fields.shape), *fields.is_fortran};
}

absl::StatusOr<NpyFile::Header> NpyFile::ReadHeader(const FileBytes& bytes,
                                                    int64_t* end) {
  std::vector<uint8_t> prefix(std::min(bytes.size(), kPrefixBytes));
  RETURN_IF_ERROR(bytes.ReadAt(0, absl::MakeSpan(prefix)));
  ASSIGN_OR_RETURN(const TextPlace place, FindText(prefix));
  *end = place.begin + place.size;
  if (*end > bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file is cut short: its header ends at ", *end,
                     ", the file at ", bytes.size()));
  }
  std::string text(place.size, '\0');
  RETURN_IF_ERROR(bytes.ReadAt(
      place.begin,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  ASSIGN_OR_RETURN(Header header, ParseHeader(text));
  int64_t wanted = BytesOf(header.type);
  for (const int64_t dim : header.shape)
    wanted = SaturatingProduct(wanted, dim);
  const int64_t found = bytes.size() - *end;
  if (wanted == found) return header;
  return absl::InvalidArgumentError(absl::StrCat(
      wanted > found ? "the file is cut short" : "the file is too long",
      ": its header announces ", wanted, " bytes, (",
      absl::StrJoin(header.shape, ", "), ") of ", NameOf(header.type),
      ", found ", found));
}

absl::StatusOr<NpyFile> NpyFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(path));
  return FromBytes(std::move(bytes));
}

absl::StatusOr<NpyFile> NpyFile::FromBytes(FileBytes bytes) {
  int64_t begin = 0;
  absl::StatusOr<Header> header = ReadHeader(bytes, &begin);
  if (!header.ok()) {
    return Annotate(header.status(),
                    absl::StrCat("reading '", bytes.path(), "'"));
  }
  const int64_t size = bytes.size() - begin;
  int64_t row_values = 1;
  for (size_t i = 1; i < header->shape.size(); ++i) {
    row_values *= header->shape[i];
  }
  FileBytes values = std::move(bytes).Part(begin, size);
  if (header->is_fortran && header->shape.size() > 1) {
    absl::StatusOr<std::vector<uint8_t>> rows =
        ReadRowMajor(values, header->shape, BytesOf(header->type));
    if (!rows.ok()) {
      return Annotate(rows.status(),
                      absl::StrCat("reading '", values.path(), "'"));
    }
    values = FileBytes(values.path(), *std::move(rows));
  }
  return NpyFile(std::move(values), *std::move(header), row_values);
}

NpyFile::NpyFile(FileBytes values, Header header, int64_t row_values)
    : values_(std::move(values)),
      header_(std::move(header)),
      row_values_(row_values) {}

template <typename T>
absl::Status NpyFile::ReadValues(int64_t first, int64_t count,
                                 absl::Span<T> dst) const {
  assert(first >= 0 && count <= num_rows() - first);
  const int64_t total = count * row_values_;
  assert(static_cast<int64_t>(dst.size()) == total);
  uint8_t chunk[kChunkBytes];
  const int64_t bytes = BytesOf(type());
  for (int64_t done = 0; done < total;) {
    const int64_t size = std::min(kChunkBytes / bytes, total - done);
    const absl::Status status =
        values_.ReadAt((first * row_values_ + done) * bytes,
                       absl::MakeSpan(chunk, size * bytes));
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("reading '", values_.path(), "'"));
    }
    ConvertAll(type(), chunk, size, dst.data() + done);
    done += size;
  }
  return absl::OkStatus();
}

absl::Status NpyFile::ReadRows(int64_t first, int64_t count,
                               absl::Span<float> dst) const {
  RETURN_IF_ERROR(ReadValues(first, count, dst));
  if (!IsFloat(type())) return absl::OkStatus();
  const int64_t at = FirstNonFinite(dst);
  return at < 0 ? absl::OkStatus() : NotFinite(first * row_values_ + at);
}

absl::Status NpyFile::NotFinite(int64_t at) const {
  uint8_t bytes[sizeof(double)];
  double found = 0;
  const int64_t element_bytes = BytesOf(type());
  RETURN_IF_ERROR(
      values_.ReadAt(at * element_bytes, absl::MakeSpan(bytes, element_bytes)));
  ConvertAll(type(), bytes, 1, &found);
  std::vector<int64_t> column;
  int64_t rest = at % row_values_;
  for (size_t i = shape().size() - 1; i > 0; --i) {
    column.insert(column.begin(), rest % shape()[i]);
    rest /= shape()[i];
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "reading row ", at / row_values_, " of '", values_.path(), "': ",
      column.empty()
          ? ""
          : absl::StrCat("column ", absl::StrJoin(column, ", "), ": "),
      "wanted a finite number, found ", found));
}

absl::Status NpyFile::ReadBytes(int64_t row, absl::Span<uint8_t> dst) const {
  return Annotate(values_.ReadAt(row * row_values_, dst),
                  absl::StrCat("reading '", values_.path(), "'"));
}

absl::Status NpyFile::ReadRows(int64_t first, int64_t count,
                               absl::Span<int64_t> dst) const {
  const std::string context = absl::StrCat("reading '", values_.path(), "'");
  if (IsFloat(type())) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, ": wanted integers, found ", NameOf(type())));
  }
  RETURN_IF_ERROR(ReadValues(first, count, dst));
  // Above INT64_MAX a uint64 has become negative.
  const auto negative =
      std::find_if(dst.begin(), dst.end(), [](int64_t v) { return v < 0; });
  if (type() != NpyType::kU8 || negative == dst.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(context, ": wanted integers up to ", INT64_MAX, ", found ",
                   static_cast<uint64_t>(*negative)));
}

}  // namespace muster
