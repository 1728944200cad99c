#include "worker/ctl/export_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/row_block.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;

absl::Status OfPath(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsAlreadyExists(status)) {
    return status;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      status.message(), "; wanted a new file in a folder that is there"));
}

}  // namespace

absl::Status ExportFile::Write(
    const VerbCall& call, const std::string& path,
    const std::vector<SafetensorsEntry>& tensors,
    const std::function<absl::Status(ExportFile*)>& fill) {
  auto writer = SafetensorsWriter::Create(call.file_system, path, tensors);
  if (!writer.ok()) return OfPath(writer.status());
  WorkProgress progress(call.output);
  const std::vector<SafetensorsEntry>& entries = (*writer)->entries();
  progress.Begin(
      {"export", entries.empty() ? 0 : entries.back().end, "MB", 1'000'000});
  ExportFile file(writer->get(), &progress);
  absl::Status written = fill(&file);
  if (written.ok()) written = (*writer)->Finish();
  if (written.ok()) return absl::OkStatus();
  writer->reset();
  call.file_system->Remove(path).IgnoreError();  // The first error is the one.
  return Annotate(written, "export");
}

absl::Status ExportFile::AppendTo(absl::string_view tensor,
                                  absl::string_view data) {
  const auto& entries = writer_->entries();
  const auto entry = absl::c_find_if(
      entries,
      [tensor](const SafetensorsEntry& each) { return each.name == tensor; });
  RETURN_IF_ERROR(
      writer_->AppendTo(static_cast<size_t>(entry - entries.begin()), data));
  progress_->Add(static_cast<int64_t>(data.size()));
  return absl::OkStatus();
}

absl::Status ExportFile::AppendRows(const CheckpointReader& reader, int table,
                                    const std::string& prefix) {
  return reader.ForEachRowBlock(table, kBlockBytes, [&](const RowBlock& rows) {
    RETURN_IF_ERROR(AppendTo(absl::StrCat(prefix, "ids"),
                             rows.stream_bytes(RowBlock::kIds)));
    return AppendTo(absl::StrCat(prefix, "values"),
                    rows.stream_bytes(RowBlock::kValues));
  });
}

std::vector<SafetensorsEntry> RowTensors(const SavedTable& table,
                                         const std::string& prefix) {
  std::vector<SafetensorsEntry> tensors(2);
  tensors[0].name = absl::StrCat(prefix, "ids");
  tensors[0].dtype = INT64;
  tensors[0].shape = Shape({table.rows()});
  tensors[1].name = absl::StrCat(prefix, "values");
  tensors[1].dtype = FLOAT32;
  tensors[1].shape = Shape({table.rows(), table.definition().dim()});
  return tensors;
}

}  // namespace muster
