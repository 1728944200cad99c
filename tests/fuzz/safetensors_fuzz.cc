// A safetensors file: its header, and reading what that promises.
#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/safetensors_header.h"
#include "common/checkpoint/safetensors_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/testing/fake_file_system.h"

namespace muster {
namespace {

constexpr char kFolder[] = "root/folder";
constexpr char kPath[] = "root/folder/file";

void TryRead(const SafetensorsReader& file) {
  for (const SafetensorsEntry& entry : file.entries()) {
    Want(file.Find(entry.name).ok(), "each tensor by its name");
    std::vector<char> bytes(entry.end - entry.begin);
    const int64_t elements = entry.shape.num_elements();
    Want(file.Read(entry.name, 0, elements, bytes.data()).ok() ==
             (FormatDtypeBytes(entry.format_dtype) > 0),
         "all elements of a tensor whose dtype is known");
    Want(!file.Read(entry.name, 1, elements, bytes.data()).ok(),
         "an error for one element too many");
    Want(file.TensorCrc32c(entry.name).ok(), "the CRC of a tensor");
  }
}

// A header that is laid out and printed is read as the same tensors.
void TryPrint(const SafetensorsReader& file, int64_t data_bytes) {
  const auto laid_out = LayOutSafetensors(file.entries());
  if (!laid_out.ok()) return;
  const std::string printed = FormatSafetensorsHeader(*laid_out);
  const auto header = ParseSafetensorsHeader(
      absl::string_view(printed).substr(kSafetensorsPrefixBytes), data_bytes);
  std::map<std::string, SafetensorsEntry> entries;
  for (const SafetensorsEntry& entry : Wanted(header, "a header").entries) {
    entries.emplace(entry.name, entry);
  }
  Want(entries.size() == laid_out->size(), "as many tensors");
  for (const SafetensorsEntry& entry : *laid_out) {
    const SafetensorsEntry& found = entries[entry.name];
    Want(found.shape == entry.shape && found.dtype == entry.dtype &&
             found.begin == entry.begin && found.end == entry.end,
         "the same tensor");
  }
}

}  // namespace

void TryInput(absl::string_view input) {
  FakeFileSystem files("root");
  Want(files.CreateFolder(kFolder).ok(), "a folder");
  Want(Wanted(files.CreateFile(kPath), "a file")->Append(input).ok(), "room");
  const auto file = SafetensorsReader::Open(&files, kPath);
  if (!file.ok()) return;
  int64_t data_bytes = 0;
  for (const SafetensorsEntry& entry : (*file)->entries()) {
    data_bytes += entry.end - entry.begin;
  }
  Want(data_bytes <= static_cast<int64_t>(input.size()), "no byte twice");
  TryRead(**file);
  TryPrint(**file, data_bytes);
}

}  // namespace muster
