#include "common/checkpoint/safetensors_header.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/config/json.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";
// The fields of a tensor.
constexpr absl::string_view kFields[] = {"dtype", "shape", "data_offsets"};
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

absl::string_view NameOfDtype(DataType dtype) {
  for (const FormatDtype& entry : kFormatDtypes) {
    if (entry.dtype == dtype && dtype != DATA_TYPE_UNSPECIFIED) {
      return entry.name;
    }
  }
  return "";
}

// Null for one whose elements are not whole bytes (F4), or that is newer than
// this table.
const FormatDtype* FindDtype(absl::string_view name) {
  for (const FormatDtype& entry : kFormatDtypes) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

absl::Status CheckName(absl::string_view name) {
  const bool plain = absl::c_all_of(name, [](unsigned char c) {
    return absl::ascii_isprint(c) && c != '"' && c != '\\';
  });
  if (!name.empty() && plain && name != kMetadataKey) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(name), "' is no name for a tensor in a file"));
}

// [1, 2, 3], of numbers that are not negative.
absl::StatusOr<std::vector<int64_t>> Integers(const JsonValue* list) {
  std::vector<int64_t> values;
  if (list == nullptr || list->kind != JsonValue::Kind::kArray) {
    return absl::DataLossError("expected a list of integers");
  }
  for (const JsonValue& item : list->items) {
    int64_t value = 0;
    if (item.kind != JsonValue::Kind::kNumber ||
        !absl::c_all_of(item.text, &absl::ascii_isdigit) ||
        !absl::SimpleAtoi(item.text, &value)) {
      return absl::DataLossError(
          "expected a non-negative integer of 63 bits in a list");
    }
    values.push_back(value);
  }
  return values;
}

// The tensor that the member `name` of a header describes.
absl::StatusOr<SafetensorsEntry> ParseEntry(const std::string& name,
                                            const JsonValue& fields) {
  for (const auto& [field, value] : fields.members) {
    if (absl::c_linear_search(kFields, field)) continue;
    return absl::DataLossError(
        absl::StrCat("unknown field '", absl::CHexEscape(field), "'"));
  }
  const JsonValue* const type = fields.Find("dtype");
  if (fields.members.size() != 3 || type == nullptr ||
      type->kind != JsonValue::Kind::kString) {
    return absl::DataLossError(
        "expected exactly dtype, shape and two data_offsets");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                   Integers(fields.Find("shape")));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                   Integers(fields.Find("data_offsets")));
  if (offsets.size() != 2) {
    return absl::DataLossError(
        "expected exactly dtype, shape and two data_offsets");
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.format_dtype = type->text;
  const FormatDtype* const dtype = FindDtype(type->text);
  if (dtype != nullptr) entry.dtype = dtype->dtype;
  const absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return absl::DataLossError(shape.status().message());
  entry.shape = *shape;
  entry.begin = offsets[0];
  entry.end = offsets[1];
  // A Shape times 8 bytes does not overflow.
  const int64_t size_bytes = dtype == nullptr
                                 ? std::max(entry.end - entry.begin, int64_t{0})
                                 : entry.shape.num_elements() * dtype->bytes;
  if (entry.end - entry.begin != size_bytes) {
    return absl::DataLossError(
        absl::StrCat("data_offsets [", entry.begin, ", ", entry.end,
                     "], but shape ", entry.shape.ToString(), " of ",
                     type->text, " has ", size_bytes, " bytes"));
  }
  return entry;
}

absl::Status ParseMetadata(const JsonValue& fields,
                           std::map<std::string, std::string>* metadata) {
  for (const auto& [key, value] : fields.members) {
    if (value.kind != JsonValue::Kind::kString) {
      return absl::DataLossError("__metadata__: expected texts");
    }
    metadata->emplace(key, value.text);
  }
  return absl::OkStatus();
}

absl::Status ParseMember(const std::string& name, const JsonValue& value,
                         SafetensorsHeader* header) {
  const std::string printable = absl::CHexEscape(name);
  if (value.kind != JsonValue::Kind::kObject) {
    return absl::DataLossError(
        absl::StrCat("'", printable, "': expected an object"));
  }
  if (name == kMetadataKey) return ParseMetadata(value, &header->metadata);
  absl::StatusOr<SafetensorsEntry> entry = ParseEntry(name, value);
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
  const FormatDtype* const dtype = FindDtype(format_dtype);
  return dtype == nullptr ? 0 : dtype->bytes;
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
  const absl::StatusOr<JsonValue> parsed = ParseJson(json, json.size());
  if (!parsed.ok()) {
    return absl::DataLossError(
        absl::StrCat("header ", parsed.status().message()));
  }
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed->members) {
    RETURN_IF_ERROR(ParseMember(name, value, &header));
  }
  // Those without elements begin where others do, and keep their order.
  absl::c_stable_sort(header.entries, [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  RETURN_IF_ERROR(CheckContiguous(header.entries, data_bytes));
  return header;
}

}  // namespace muster
