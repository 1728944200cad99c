#include "common/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/table_order.h"
#include "common/checkpoint/train_dir.h"

namespace muster {
namespace {

// The layout that the manifest promises.
absl::StatusOr<CheckpointLayout> PromisedLayout(
    const CheckpointManifest& manifest) {
  const std::vector<TensorDef> parameters(manifest.parameters().begin(),
                                          manifest.parameters().end());
  const std::vector<std::string> slots(manifest.slots().begin(),
                                       manifest.slots().end());
  const std::vector<SavedTable> tables(manifest.tables().begin(),
                                       manifest.tables().end());
  absl::StatusOr<CheckpointLayout> layout =
      LayOutCheckpoint(parameters, slots, tables);
  if (!layout.ok()) return absl::DataLossError(layout.status().message());
  std::vector<std::string> files = {kParametersFile, kSlotsFile};
  if (!tables.empty()) files.push_back(kTablesFile);
  const auto tensors = static_cast<int>(
      layout->parameters.size() + layout->slots.size() + layout->tables.size());
  const bool fits =
      absl::c_equal(manifest.files(), files,
                    [](const CheckpointFile& file, const std::string& name) {
                      return file.name() == name;
                    });
  if (fits && manifest.tensors_size() == tensors) return layout;
  return absl::DataLossError(
      absl::StrCat("the manifest lists ", manifest.files_size(), " files with ",
                   manifest.tensors_size(),
                   " tensors, its parameters, slots and tables make ",
                   files.size(), " files with ", tensors));
}

absl::Status CheckEntry(const SafetensorsEntry& wanted,
                        const SafetensorsEntry& found) {
  if (wanted.name == found.name && wanted.dtype == found.dtype &&
      wanted.shape == found.shape && wanted.begin == found.begin) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "its header has tensor '", absl::CHexEscape(found.name), "' of shape ",
      found.shape.ToString(), " where the manifest has '", wanted.name,
      "' of shape ", wanted.shape.ToString()));
}

int64_t BytesOf(const CheckpointManifest& manifest) {
  int64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files()) bytes += file.bytes();
  return bytes;
}

// Is the file what the manifest promises? `first_tensor` is the manifest's
// index of the file's first tensor.
absl::Status CheckFile(const CheckpointManifest& manifest,
                       const CheckpointFile& file, int first_tensor,
                       const std::vector<SafetensorsEntry>& wanted,
                       const SafetensorsReader& reader,
                       WorkProgress* progress) {
  if (reader.file_bytes() != file.bytes() ||
      reader.entries().size() != wanted.size()) {
    return absl::DataLossError(absl::StrCat(
        reader.file_bytes(), " bytes with ", reader.entries().size(),
        " tensors, the manifest has ", file.bytes(), " with ", wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    RETURN_IF_ERROR(CheckEntry(wanted[i], reader.entries()[i]));
    const CheckpointTensor& tensor =
        manifest.tensors(first_tensor + static_cast<int>(i));
    ASSIGN_OR_RETURN(const uint32_t crc, reader.TensorCrc32c(wanted[i].name));
    if (tensor.name() != wanted[i].name || tensor.crc32c() != crc) {
      return absl::DataLossError(absl::StrCat(
          "tensor '", wanted[i].name, "' is damaged: its CRC does not fit"));
    }
    progress->Add(reader.entries()[i].end - reader.entries()[i].begin);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> OpenFile(
    FileSystem* file_system, const std::string& folder,
    const CheckpointManifest& manifest, int file, int first_tensor,
    const std::vector<SafetensorsEntry>& wanted, WorkProgress* progress) {
  const std::string path =
      absl::StrCat(folder, "/", manifest.files(file).name());
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> reader,
                   SafetensorsReader::Open(file_system, path));
  const absl::Status fits = CheckFile(manifest, manifest.files(file),
                                      first_tensor, wanted, *reader, progress);
  const std::string context = absl::StrCat("read '", path, "'");
  // A read that failed has said so.
  if (absl::StartsWith(fits.message(), context)) return fits;
  RETURN_IF_ERROR(Annotate(fits, context));
  return reader;
}

constexpr int64_t kOrderBytes = 1 << 20;

// Are the rows of all tables in their order?
absl::Status CheckRowOrder(const CheckpointManifest& manifest,
                           const SafetensorsReader& reader) {
  std::vector<int64_t> ids;
  for (const SavedTable& table : manifest.tables()) {
    TableOrder order(table.definition().name());
    const std::string stream = TableStreams(table)[RowBlock::kIds];
    for (int64_t row = 0; row < table.rows();) {
      const int64_t count = std::min<int64_t>(
          table.rows() - row,
          kOrderBytes / static_cast<int64_t>(sizeof(int64_t)));
      ids.resize(static_cast<size_t>(count));
      RETURN_IF_ERROR(reader.Read(stream, row, count, ids.data()));
      RETURN_IF_ERROR(order.Add(ids));
      row += count;
    }
  }
  return absl::OkStatus();
}

// Null without tables.
absl::StatusOr<std::unique_ptr<SafetensorsReader>> OpenTables(
    FileSystem* file_system, const std::string& folder,
    const CheckpointManifest& manifest, const CheckpointLayout& layout,
    WorkProgress* progress) {
  if (manifest.tables().empty()) return nullptr;
  ASSIGN_OR_RETURN(
      std::unique_ptr<SafetensorsReader> reader,
      OpenFile(file_system, folder, manifest, /*file=*/2,
               static_cast<int>(layout.parameters.size() + layout.slots.size()),
               layout.tables, progress));
  const absl::Status ordered = CheckRowOrder(manifest, *reader);
  const std::string context =
      absl::StrCat("read '", folder, "/", kTablesFile, "'");
  // A read that failed has said so.
  if (absl::StartsWith(ordered.message(), context)) return ordered;
  RETURN_IF_ERROR(Annotate(ordered, context));
  return reader;
}

}  // namespace

CheckpointReader::CheckpointReader(
    std::string path, CheckpointManifest manifest, CheckpointLayout layout,
    std::unique_ptr<SafetensorsReader> parameters,
    std::unique_ptr<SafetensorsReader> slots,
    std::unique_ptr<SafetensorsReader> tables)
    : path_(std::move(path)),
      manifest_(std::move(manifest)),
      layout_(std::move(layout)),
      parameters_(std::move(parameters)),
      slots_(std::move(slots)),
      tables_(std::move(tables)) {}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    FileSystem* file_system, const std::string& path, WorkProgress* progress) {
  ASSIGN_OR_RETURN(CheckpointManifest manifest,
                   ReadManifestFile(file_system, path));
  absl::StatusOr<CheckpointLayout> layout = PromisedLayout(manifest);
  if (!layout.ok()) {
    return Annotate(layout.status(), absl::StrCat("read '", path, "'"));
  }
  WorkProgress silent;
  if (progress == nullptr) progress = &silent;
  progress->Begin(
      {absl::StrCat("check of ", path), BytesOf(manifest), "MB", 1'000'000});
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> parameters,
                   OpenFile(file_system, path, manifest, /*file=*/0,
                            /*first_tensor=*/0, layout->parameters, progress));
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> slots,
                   OpenFile(file_system, path, manifest, /*file=*/1,
                            static_cast<int>(layout->parameters.size()),
                            layout->slots, progress));
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> tables,
                   OpenTables(file_system, path, manifest, *layout, progress));
  return std::unique_ptr<CheckpointReader>(new CheckpointReader(
      path, std::move(manifest), *std::move(layout), std::move(parameters),
      std::move(slots), std::move(tables)));
}

absl::StatusOr<CheckpointReader::Newest> CheckpointReader::OpenNewest(
    FileSystem* file_system, const std::string& train_dir,
    WorkProgress* progress) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   ListCheckpoints(file_system, train_dir));
  if (steps.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint in train_dir '", train_dir, "'"));
  }
  Newest newest;
  for (const int64_t step : steps) {
    const std::string path = absl::StrCat(train_dir, "/", CheckpointName(step));
    absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
        Open(file_system, path, progress);
    if (reader.ok()) {
      newest.reader = *std::move(reader);
      return newest;
    }
    if (absl::IsFailedPrecondition(reader.status()) ||
        IsStopped(reader.status())) {
      return reader.status();
    }
    newest.warnings.push_back(absl::StrCat("checkpoint '", path,
                                           "' is not usable, trying the one "
                                           "before it: ",
                                           reader.status().message()));
  }
  return absl::DataLossError(
      absl::StrCat("no checkpoint in train_dir '", train_dir,
                   "' is usable: ", absl::StrJoin(newest.warnings, "; ")));
}

absl::Status CheckpointReader::Read(absl::string_view parameter,
                                    absl::string_view slot, int64_t offset,
                                    int64_t length, void* dst) const {
  if (slot.empty()) return parameters_->Read(parameter, offset, length, dst);
  return slots_->Read(absl::StrCat(parameter, "/", slot), offset, length, dst);
}

absl::Status CheckpointReader::ReadRows(int table, int64_t first,
                                        RowBlock* rows) const {
  const std::vector<std::string> streams =
      TableStreams(manifest_.tables(table));
  for (size_t i = 0; i < streams.size(); ++i) {
    const int64_t width = i < RowBlock::kValues ? 1 : rows->dim();
    RETURN_IF_ERROR(tables_->Read(streams[i], first * width,
                                  rows->rows() * width, rows->stream_data(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::ForEachRowBlock(
    int table, int64_t block_bytes,
    const std::function<absl::Status(const RowBlock&)>& function) const {
  const SavedTable& saved = manifest_.tables(table);
  RowBlock block(saved.definition().dim(), saved.slots_size());
  const int64_t longest = std::max<int64_t>(block_bytes / block.row_bytes(), 1);
  for (int64_t row = 0; row < saved.rows(); row += block.rows()) {
    block.Resize(std::min(longest, saved.rows() - row));
    RETURN_IF_ERROR(ReadRows(table, row, &block));
    RETURN_IF_ERROR(function(block));
  }
  return absl::OkStatus();
}

}  // namespace muster
