#include "worker/input/data_set/data_sections.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/fingerprint.h"
#include "google/protobuf/text_format.h"
#include "worker/input/data_set/data_schema.h"

namespace muster {
namespace {

void AddLine(absl::string_view item, std::string* text) {
  absl::StrAppend(text, EscapeForLog(item, std::numeric_limits<size_t>::max()),
                  "\n");
}

std::string ColumnLines(const DataSchema& schema) {
  std::string text;
  for (const DataColumn& column : schema.column()) {
    AddLine(absl::StrCat(
                column.name(), " ", column.kind(), " [",
                column.any_shape() ? "any" : absl::StrJoin(column.shape(), ","),
                "]"),
            &text);
  }
  return text;
}

std::string ClassLines(const DataSchema& schema) {
  std::string text;
  for (const std::string& name : schema.label().class_name()) {
    AddLine(name, &text);
  }
  return text;
}

std::string MapLines(const DataSchema& schema) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  for (const MapSpec& stage : schema.map()) {
    std::string line;
    printer.PrintToString(stage, &line);
    AddLine(absl::StripTrailingAsciiWhitespace(line), &text);
  }
  return text;
}

std::string LabelLines(const DataSchema& schema) {
  const DataLabel& label = schema.label();
  std::string text;
  AddLine(label.kind(), &text);
  if (label.num_classes() > 0) {
    AddLine(absl::StrCat(label.num_classes(), " classes"), &text);
  }
  for (const std::string& column : label.column()) {
    AddLine(absl::StrCat("column ", column), &text);
  }
  if (!label.weight_column().empty()) {
    AddLine(absl::StrCat("weight column ", label.weight_column()), &text);
  }
  return text;
}

std::string FileLines(const DataFiles& files) {
  std::string text;
  AddLine(
      absl::StrCat(files.num_files(), " files with ", files.bytes(), " bytes"),
      &text);
  for (const DataFile& file : files.files()) {
    AddLine(absl::StrCat(file.name(), " ", file.bytes()), &text);
  }
  if (files.files().empty()) {
    AddLine(absl::StrFormat("fingerprint %016x", files.fingerprint()), &text);
  }
  return text;
}

DataSection MakeSection(absl::string_view name, std::string text) {
  DataSection section;
  section.set_name(std::string(name));
  section.set_digest(Fingerprint64(text));
  section.set_text(std::move(text));
  return section;
}

// Each has at least an equal share, and what shorter ones leave of theirs.
void CutTexts(std::vector<DataSection>* sections) {
  std::vector<DataSection*> by_size;
  for (DataSection& section : *sections) by_size.push_back(&section);
  std::sort(by_size.begin(), by_size.end(),
            [](const DataSection* a, const DataSection* b) {
              return a->text().size() < b->text().size();
            });
  size_t left = kMaxSectionBytes;
  for (size_t i = 0; i < by_size.size(); ++i) {
    std::string& text = *by_size[i]->mutable_text();
    const size_t share = left / (by_size.size() - i);
    if (text.size() > share) {
      // npos + 1 is 0: not even one line fits.
      text.resize(text.substr(0, share).rfind('\n') + 1);
    }
    left -= text.size();
  }
}

}  // namespace

std::vector<DataSection> MakeDataSections(const DataSchema& schema,
                                          int64_t num_workers) {
  const DataSection workers =
      MakeSection("workers", absl::StrCat(num_workers, "\n"));
  if (schema.format() == kProgramFormat) return {workers};
  std::vector<DataSection> sections = {
      MakeSection("columns", ColumnLines(schema)),
      MakeSection("classes", ClassLines(schema)),
      MakeSection("map", MapLines(schema)),
      MakeSection("label", LabelLines(schema))};
  if (schema.training().has_rows()) {
    sections.push_back(
        MakeSection("rows", absl::StrCat(schema.training().rows(), "\n")));
  }
  sections.push_back(workers);
  sections.push_back(
      MakeSection("files", FileLines(schema.training().files())));
  CutTexts(&sections);
  return sections;
}

}  // namespace muster
