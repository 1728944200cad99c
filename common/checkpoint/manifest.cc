#include "common/checkpoint/manifest.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/checkpoint/checked_text.h"
#include "common/rows/row_ranges.h"
#include "common/tensor/dtype.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

namespace muster {
namespace {

constexpr char kFirstLine[] =
    "# A Muster checkpoint; the fields are those of checkpoint.proto.\n";

// The deepest message in it has 4 levels.
constexpr int kMaxDepth = 32;

// Every format from 2 on ends with a CRC of its text, so that a damaged one is
// not taken for one of a newer format.
constexpr int kFirstFormatWithTrailer = 2;

// The value of a top-level field on a line of its own, as the text has it; ""
// without one.
absl::string_view LineOf(absl::string_view text, absl::string_view field) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, field) && absl::ConsumePrefix(&line, ": ")) {
      return line;
    }
  }
  return "";
}

// A newer format's own fields and values may be none that can be parsed here.
absl::Status CheckNotNewer(absl::string_view text) {
  int64_t version = 0;
  if (!absl::SimpleAtoi(LineOf(text, "format_version"), &version) ||
      version <= kCheckpointFormatVersion || !CrcLineFits(text)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint has format version ", version, " (of Muster ",
      absl::CHexEscape(absl::StripSuffix(
          absl::StripPrefix(LineOf(text, "muster_version"), "\""), "\"")),
      "), this program reads up to ", kCheckpointFormatVersion,
      "; use the newer Muster"));
}

// The CRC of the serialized bytes with the field itself 0. There is no map in
// the message, so its bytes are the same everywhere.
uint32_t ManifestCrc(CheckpointManifest manifest) {
  manifest.set_manifest_crc32c(0);
  manifest.DiscardUnknownFields();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    manifest.SerializeToCodedStream(&coded);
  }
  return Crc32c(bytes);
}

// Keeps the first error for the message; protobuf would print it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ",
                         absl::CHexEscape(message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Describe(const TensorDef& parameter) {
  return absl::StrCat("[", absl::StrJoin(parameter.shape(), ", "), "] of ",
                      DataTypeName(parameter.dtype()),
                      parameter.kind() == STATE    ? " (state)"
                      : parameter.kind() == FROZEN ? " (frozen)"
                                                   : "");
}

// `what`: "parameter 'w'".
absl::Status Differs(absl::string_view what, absl::string_view wanted,
                     absl::string_view found) {
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint is of another model: ", what,
                   ": the model has ", wanted, ", the checkpoint ", found));
}

absl::Status Differs(const TensorDef& parameter, absl::string_view wanted,
                     absl::string_view found) {
  return Differs(absl::StrCat("parameter '", parameter.name(), "'"), wanted,
                 found);
}

std::string Describe(const TableDef& table) {
  return absl::StrCat("rows of ", table.dim(), " with rule '",
                      absl::CHexEscape(table.optimizer().name()), "'");
}

absl::Status CheckTables(const CheckpointManifest& manifest,
                         absl::Span<const TableDef> tables) {
  constexpr char kNone[] = "no such table";
  std::map<std::string, std::string> saved;
  for (const SavedTable& table : manifest.tables()) {
    saved[table.definition().name()] = Describe(table.definition());
  }
  for (const TableDef& table : tables) {
    const auto it = saved.find(table.name());
    const std::string found = it == saved.end() ? kNone : it->second;
    if (found != Describe(table)) {
      return Differs(absl::StrCat("table '", table.name(), "'"),
                     Describe(table), found);
    }
    saved.erase(it);
  }
  if (saved.empty()) return absl::OkStatus();
  const auto& [name, description] = *saved.begin();
  return Differs(absl::StrCat("table '", name, "'"), kNone, description);
}

}  // namespace

int FormatVersionOf(const CheckpointManifest& manifest) {
  if (!manifest.tables().empty()) return kCheckpointFormatVersion;
  if (manifest.has_ledger()) return kFirstFormatWithLedger;
  if (manifest.has_evaluations()) return kFirstFormatWithEvaluations;
  return manifest.has_schema() ? kFirstFormatWithSchema
                               : kFirstFormatWithSchema - 1;
}

absl::StatusOr<std::string> FormatManifest(CheckpointManifest manifest) {
  const int format_version = FormatVersionOf(manifest);
  return FormatManifest(std::move(manifest), format_version);
}

absl::StatusOr<std::string> FormatManifest(CheckpointManifest manifest,
                                           int format_version) {
  manifest.set_format_version(format_version);
  manifest.set_manifest_crc32c(ManifestCrc(manifest));
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(manifest, &text)) {
    return absl::InternalError("the manifest cannot be printed as text");
  }
  text = absl::StrCat(kFirstLine, text);
  return format_version < kFirstFormatWithTrailer ? text : WithCrcLine(text);
}

absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view text) {
  // Protobuf would take it, and complain on stderr later.
  if (!IsUtf8(text)) return absl::DataLossError("not a manifest: no UTF-8");
  RETURN_IF_ERROR(CheckNotNewer(text));
  CheckpointManifest manifest;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  // The CRC of the message covers none, and tells them.
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(std::string(text), &manifest)) {
    return absl::DataLossError(absl::StrCat("not a manifest: ", error.text()));
  }
  if (manifest.format_version() >= kFirstFormatWithTrailer &&
      !CrcLineFits(text)) {
    return absl::DataLossError(
        "the CRC in the manifest's last line does not fit: it is damaged or "
        "was edited");
  }
  if (manifest.format_version() < 1 ||
      manifest.format_version() > kCheckpointFormatVersion ||
      manifest.manifest_crc32c() != ManifestCrc(manifest)) {
    return absl::DataLossError(
        "the manifest's CRC does not fit: it is damaged or was edited");
  }
  if (const absl::Status ledger = CheckLedger(manifest.ledger());
      !ledger.ok()) {
    return absl::DataLossError(
        absl::StrCat("the manifest is damaged: ", ledger.message()));
  }
  return manifest;
}

absl::Status CheckCompatible(const CheckpointManifest& manifest,
                             absl::Span<const TensorDef> parameters,
                             const OptimizerSpec& optimizer,
                             absl::Span<const TableDef> tables) {
  std::map<std::string, const TensorDef*> saved;
  for (const TensorDef& parameter : manifest.parameters()) {
    saved[parameter.name()] = &parameter;
  }
  for (const TensorDef& parameter : parameters) {
    const auto it = saved.find(parameter.name());
    if (it == saved.end()) {
      return Differs(parameter, Describe(parameter), "no such parameter");
    }
    if (Describe(parameter) != Describe(*it->second)) {
      const absl::Status differs =
          Differs(parameter, Describe(parameter), Describe(*it->second));
      if (parameter.kind() == it->second->kind()) return differs;
      return absl::FailedPreconditionError(absl::StrCat(
          differs.message(),
          "; what is frozen stays so in one train_dir: begin another one with "
          "this checkpoint as --init_from"));
    }
    saved.erase(it);
  }
  for (const TensorDef& parameter : manifest.parameters()) {
    if (saved.count(parameter.name()) > 0) {
      return Differs(parameter, "no such parameter", Describe(parameter));
    }
  }
  if (optimizer.name() != manifest.optimizer().name()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint was trained with optimizer '",
                     absl::CHexEscape(manifest.optimizer().name()),
                     "', the training has '", optimizer.name(), "'"));
  }
  return CheckTables(manifest, tables);
}

}  // namespace muster
