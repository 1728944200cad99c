// musterctl checkpoint export: the parameters as one safetensors file.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;

// The parameters in the order of the file that is to be written.
absl::Status CopyParameters(const CheckpointReader& reader,
                            SafetensorsWriter* writer,
                            const ProgressOutput& output) {
  WorkProgress progress(output);
  const int64_t bytes =
      writer->entries().empty() ? 0 : writer->entries().back().end;
  progress.Begin({"export", bytes, "MB", 1'000'000});
  std::string buffer;
  for (const SafetensorsEntry& entry : writer->entries()) {
    const int64_t elements = entry.shape.num_elements();
    const auto size = static_cast<int64_t>(SizeOf(entry.dtype));
    const int64_t longest = kPieceBytes / size;
    for (int64_t offset = 0; offset < elements; offset += longest) {
      const int64_t count = std::min(longest, elements - offset);
      buffer.resize(static_cast<size_t>(count * size));
      RETURN_IF_ERROR(
          reader.Read(entry.name, "", offset, count, buffer.data()));
      RETURN_IF_ERROR(writer->Append(buffer));
      progress.Add(count * size);
    }
  }
  return writer->Finish();
}

absl::Status WriteParameters(const VerbCall& call,
                             const CheckpointReader& reader,
                             const std::string& path) {
  std::vector<SafetensorsEntry> tensors;
  for (const CheckpointPiece& piece : reader.pieces()) {
    if (!piece.slot.empty()) continue;
    SafetensorsEntry entry;
    entry.name = piece.parameter.name();
    entry.dtype = piece.dtype;
    ASSIGN_OR_RETURN(entry.shape, Shape::Create(piece.parameter.shape()));
    tensors.push_back(std::move(entry));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsWriter> writer,
                   SafetensorsWriter::Create(call.file_system, path, tensors));
  const absl::Status copied = CopyParameters(reader, writer.get(), call.output);
  if (copied.ok()) return absl::OkStatus();
  writer.reset();
  call.file_system->Remove(path).IgnoreError();  // The first error is the one.
  return Annotate(copied, "export");
}

absl::Status Export(const VerbCall& call, VerbResult* result) {
  const std::string& file = call.arguments[1];
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   OpenNewestCheckpoint(call, call.arguments[0], &result->out));
  const absl::Status written = WriteParameters(call, *reader, file);
  if (absl::IsNotFound(written) || absl::IsAlreadyExists(written)) {
    return absl::InvalidArgumentError(absl::StrCat(
        written.message(), "; wanted a new file in a folder that is there"));
  }
  RETURN_IF_ERROR(written);
  absl::StrAppend(&result->out, "exported the parameters of ", reader->path(),
                  " to ", file, "\n");
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "checkpoint export",
    {"PATH FILE",
     "writes a checkpoint's parameters to a new safetensors file.\n"
     "  A train_dir stands for its newest whole checkpoint.",
     {},
     2,
     2,
     &Export});

}  // namespace
}  // namespace muster
