#include "common/checkpoint/safetensors_header.h"

#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/json_cursor.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr size_t kHeaderAlignment = 8;

struct FormatDtype {
  absl::string_view name;
  int64_t bytes;
  DataType dtype;
};
constexpr FormatDtype kFormatDtypes[] = {{"F64", 8, FLOAT64},
                                         {"I64", 8, INT64},
                                         {"F32", 4, FLOAT32},
                                         {"I32", 4, INT32},
                                         {"U8", 1, UINT8},
                                         {"F16", 2, DATA_TYPE_UNSPECIFIED},
                                         {"BF16", 2, DATA_TYPE_UNSPECIFIED},
                                         {"BOOL", 1, DATA_TYPE_UNSPECIFIED},
                                         {"I8", 1, DATA_TYPE_UNSPECIFIED},
                                         {"U16", 2, DATA_TYPE_UNSPECIFIED},
                                         {"I16", 2, DATA_TYPE_UNSPECIFIED},
                                         {"U32", 4, DATA_TYPE_UNSPECIFIED},
                                         {"U64", 8, DATA_TYPE_UNSPECIFIED},
                                         {"C64", 8, DATA_TYPE_UNSPECIFIED},
                                         {"F8_E4M3", 1, DATA_TYPE_UNSPECIFIED},
                                         {"F8_E5M2", 1, DATA_TYPE_UNSPECIFIED},
                                         {"F8_E8M0", 1, DATA_TYPE_UNSPECIFIED}};
// Types of the format whose elements are not whole bytes.
constexpr absl::string_view kUnsupportedDtypes[] = {"F4", "F6_E2M3", "F6_E3M2"};

absl::string_view NameOfDtype(DataType dtype) {
  for (const FormatDtype& entry : kFormatDtypes) {
    if (entry.dtype == dtype && dtype != DATA_TYPE_UNSPECIFIED) {
      return entry.name;
    }
  }
  return "";
}

absl::StatusOr<FormatDtype> ParseDtype(absl::string_view name) {
  for (const FormatDtype& entry : kFormatDtypes) {
    if (entry.name == name) return entry;
  }
  if (absl::c_linear_search(kUnsupportedDtypes, name)) {
    return absl::UnimplementedError(
        absl::StrCat("dtype ", name, " is not supported"));
  }
  return absl::DataLossError(
      absl::StrCat("unknown dtype '", absl::CHexEscape(name), "'"));
}

absl::Status CheckName(absl::string_view name) {
  const bool plain = absl::c_all_of(name, [](unsigned char c) {
    return absl::ascii_isprint(c) && c != '"' && c != '\\';
  });
  if (!name.empty() && plain && name != kMetadataKey) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(name), "' is no name for a tensor in a file"));
}

// The fields of one tensor, as they come.
struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
};

absl::Status ParseField(JsonCursor* cursor, RawEntry* raw) {
  ASSIGN_OR_RETURN(const std::string key, cursor->String());
  RETURN_IF_ERROR(cursor->Expect(':'));
  if (key == "dtype" && !raw->dtype.has_value()) {
    ASSIGN_OR_RETURN(raw->dtype, cursor->String());
    return absl::OkStatus();
  }
  if (key == "shape" && !raw->shape.has_value()) {
    ASSIGN_OR_RETURN(raw->shape, cursor->Integers());
    return absl::OkStatus();
  }
  if (key == "data_offsets" && !raw->offsets.has_value()) {
    ASSIGN_OR_RETURN(raw->offsets, cursor->Integers());
    return absl::OkStatus();
  }
  return cursor->Error(
      absl::StrCat("unknown or repeated field '", absl::CHexEscape(key), "'"));
}

absl::StatusOr<SafetensorsEntry> CheckedEntry(std::string name,
                                              const RawEntry& raw) {
  if (!raw.dtype.has_value() || !raw.shape.has_value() ||
      !raw.offsets.has_value() || raw.offsets->size() != 2) {
    return absl::DataLossError(
        "expected exactly dtype, shape and two data_offsets");
  }
  SafetensorsEntry entry;
  entry.name = std::move(name);
  ASSIGN_OR_RETURN(const FormatDtype dtype, ParseDtype(*raw.dtype));
  entry.dtype = dtype.dtype;
  entry.format_dtype = *raw.dtype;
  const absl::StatusOr<Shape> shape = Shape::Create(*raw.shape);
  if (!shape.ok()) return absl::DataLossError(shape.status().message());
  entry.shape = *shape;
  entry.begin = (*raw.offsets)[0];
  entry.end = (*raw.offsets)[1];
  // A Shape times 8 bytes does not overflow.
  const int64_t size_bytes = entry.shape.num_elements() * dtype.bytes;
  if (entry.end < entry.begin || entry.end - entry.begin != size_bytes) {
    return absl::DataLossError(
        absl::StrCat("data_offsets [", entry.begin, ", ", entry.end,
                     "], but shape ", entry.shape.ToString(), " of ",
                     *raw.dtype, " has ", size_bytes, " bytes"));
  }
  return entry;
}

absl::StatusOr<SafetensorsEntry> ParseEntry(std::string name,
                                            JsonCursor* cursor) {
  RETURN_IF_ERROR(cursor->Expect('{'));
  RawEntry raw;
  if (!cursor->Consume('}')) {
    do {
      RETURN_IF_ERROR(ParseField(cursor, &raw));
    } while (cursor->Consume(','));
    RETURN_IF_ERROR(cursor->Expect('}'));
  }
  return CheckedEntry(std::move(name), raw);
}

absl::Status ParseMetadata(JsonCursor* cursor,
                           std::map<std::string, std::string>* metadata) {
  RETURN_IF_ERROR(cursor->Expect('{'));
  if (cursor->Consume('}')) return absl::OkStatus();
  do {
    ASSIGN_OR_RETURN(std::string key, cursor->String());
    RETURN_IF_ERROR(cursor->Expect(':'));
    ASSIGN_OR_RETURN(std::string value, cursor->String());
    if (!metadata->emplace(std::move(key), std::move(value)).second) {
      return cursor->Error("a key of __metadata__ is given twice");
    }
  } while (cursor->Consume(','));
  return cursor->Expect('}');
}

absl::Status ParseMember(JsonCursor* cursor, std::set<std::string>* names,
                         SafetensorsHeader* header) {
  ASSIGN_OR_RETURN(const std::string name, cursor->String());
  const std::string printable = absl::CHexEscape(name);
  RETURN_IF_ERROR(cursor->Expect(':'));
  if (!names->insert(name).second) {
    return cursor->Error(absl::StrCat("'", printable, "' is there twice"));
  }
  if (name == kMetadataKey) return ParseMetadata(cursor, &header->metadata);
  absl::StatusOr<SafetensorsEntry> entry = ParseEntry(name, cursor);
  if (!entry.ok()) {
    return Annotate(entry.status(), absl::StrCat("tensor '", printable, "'"));
  }
  header->entries.push_back(*std::move(entry));
  return absl::OkStatus();
}

// Sorted by offset, every byte of the data section belongs to one tensor.
absl::Status CheckContiguous(const std::vector<SafetensorsEntry>& entries,
                             int64_t data_bytes) {
  int64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end) {
      return absl::DataLossError(absl::StrCat(
          "tensor '", absl::CHexEscape(entry.name), "' begins at byte ",
          entry.begin, ", the one before it ends at ", end));
    }
    end = entry.end;
  }
  if (end == data_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the tensors have ", end,
                                          " bytes, the file has ", data_bytes,
                                          " after its header"));
}

}  // namespace

int64_t FormatDtypeBytes(absl::string_view format_dtype) {
  const absl::StatusOr<FormatDtype> dtype = ParseDtype(format_dtype);
  return dtype.ok() ? dtype->bytes : 0;
}

absl::StatusOr<std::vector<SafetensorsEntry>> LayOutSafetensors(
    std::vector<SafetensorsEntry> entries) {
  std::set<std::string> names;
  for (const SafetensorsEntry& entry : entries) {
    RETURN_IF_ERROR(CheckName(entry.name));
    if (NameOfDtype(entry.dtype).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", entry.name, "' has no dtype that a file can hold"));
    }
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are named '", entry.name, "'"));
    }
  }
  absl::c_sort(entries, [](const auto& a, const auto& b) {
    return std::make_tuple(SizeOf(b.dtype), absl::string_view(a.name)) <
           std::make_tuple(SizeOf(a.dtype), absl::string_view(b.name));
  });
  int64_t end = 0;
  for (SafetensorsEntry& entry : entries) {
    entry.begin = end;
    const int64_t size_bytes =
        entry.shape.num_elements() * static_cast<int64_t>(SizeOf(entry.dtype));
    if (__builtin_add_overflow(end, size_bytes, &end)) {
      return absl::InvalidArgumentError(
          "the tensors have more than 2^63 bytes");
    }
    entry.end = end;
    entry.format_dtype = std::string(NameOfDtype(entry.dtype));
  }
  return entries;
}

std::string FormatSafetensorsHeader(
    const std::vector<SafetensorsEntry>& entries) {
  std::string json = "{";
  for (const SafetensorsEntry& entry : entries) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", "\"", entry.name,
                    "\":{\"dtype\":\"", NameOfDtype(entry.dtype),
                    "\",\"shape\":[", absl::StrJoin(entry.shape.dims(), ","),
                    "],\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
  }
  json.push_back('}');
  while (json.size() % kHeaderAlignment != 0) json.push_back(' ');
  std::string prefix;
  for (int shift = 0; shift < 64; shift += 8) {
    prefix.push_back(static_cast<char>(
        (static_cast<uint64_t>(json.size()) >> shift) & 0xff));
  }
  return prefix + json;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes) {
  if (!IsUtf8(json)) return absl::DataLossError("the header is not UTF-8");
  if (json.empty() || json[0] != '{') {
    return absl::DataLossError("the header does not start with '{'");
  }
  JsonCursor cursor(json);
  RETURN_IF_ERROR(cursor.Expect('{'));
  SafetensorsHeader header;
  std::set<std::string> names;
  if (!cursor.Consume('}')) {
    do {
      RETURN_IF_ERROR(ParseMember(&cursor, &names, &header));
    } while (cursor.Consume(','));
    RETURN_IF_ERROR(cursor.Expect('}'));
  }
  RETURN_IF_ERROR(cursor.End());
  absl::c_sort(header.entries, [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  RETURN_IF_ERROR(CheckContiguous(header.entries, data_bytes));
  return header;
}

}  // namespace muster
