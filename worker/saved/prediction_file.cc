#include "worker/saved/prediction_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/json_quote.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

constexpr char kTemporaryEnding[] = ".tmp";

// With as many digits as tell all float32 apart.
void AppendNumber(std::string* text, float number) {
  absl::StrAppendFormat(text, "%.9g", number);
}

// RFC 4180.
std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

class CsvPredictions : public PredictionFile {
 public:
  CsvPredictions(std::string path, const Columns& columns)
      : PredictionFile(std::move(path), columns) {}

 private:
  size_t num_fields() const {
    return (columns().has_names ? 1 : 0) + (columns().has_class ? 1 : 0) +
           static_cast<size_t>(columns().num_numbers);
  }

  std::string Header() const override {
    std::vector<std::string> names;
    if (columns().has_names) names.push_back("file");
    if (columns().has_class) names.push_back("class");
    for (int64_t i = 0; i < columns().num_numbers; ++i) {
      const bool is_named = !columns().class_names.empty();
      names.push_back(CsvField(
          absl::StrCat(columns().number_name, "_",
                       is_named ? columns().class_names[i] : absl::StrCat(i))));
    }
    return absl::StrJoin(names, ",") + "\n";
  }

  std::string Text(const Row& row) const override {
    std::vector<std::string> fields;
    if (columns().has_names) fields.push_back(CsvField(row.name));
    if (row.is_bad) {
      fields.resize(num_fields());
    } else {
      if (columns().has_class) fields.push_back(CsvField(ClassOf(row)));
      for (const float number : row.numbers) {
        AppendNumber(&fields.emplace_back(), number);
      }
    }
    const std::string line = absl::StrJoin(fields, ",");
    // Readers pass over a line without a character.
    return absl::StrCat(line.empty() ? "\"\"" : line, "\n");
  }
};

class JsonPredictions : public PredictionFile {
 public:
  JsonPredictions(std::string path, const Columns& columns)
      : PredictionFile(std::move(path), columns) {}

 private:
  std::string Header() const override { return ""; }

  std::string Text(const Row& row) const override {
    std::vector<std::string> members;
    if (columns().has_names) {
      members.push_back(absl::StrCat("\"file\": ", JsonQuote(row.name)));
    }
    if (columns().has_class) {
      members.push_back(absl::StrCat("\"class\": ", Class(row)));
    }
    if (columns().num_numbers > 0) members.push_back(Numbers(row));
    return absl::StrCat("{", absl::StrJoin(members, ", "), "}\n");
  }

  std::string Class(const Row& row) const {
    if (row.is_bad) return "null";
    const bool is_named = !columns().class_names.empty();
    return is_named ? JsonQuote(ClassOf(row)) : ClassOf(row);
  }

  std::string Numbers(const Row& row) const {
    const bool is_output = columns().number_name == "output";
    std::string text = is_output ? "\"outputs\": " : "\"probabilities\": ";
    if (row.is_bad) return text + "null";
    for (size_t i = 0; i < row.numbers.size(); ++i) {
      text.append(i == 0 ? "[" : ", ");
      // JSON has no NaN.
      if (std::isfinite(row.numbers[i])) {
        AppendNumber(&text, row.numbers[i]);
      } else {
        text.append("null");
      }
    }
    return text + "]";
  }
};

template <typename T>
std::string BytesOf(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// float32 [rows, numbers], or int64 [rows] of classes.
class NpyPredictions : public PredictionFile {
 public:
  NpyPredictions(std::string path, const Columns& columns)
      : PredictionFile(std::move(path), columns) {}

 private:
  std::string Header() const override {
    const int64_t numbers = columns().num_numbers;
    std::string dict = absl::StrCat(
        "{'descr': '", numbers > 0 ? "<f4" : "<i8",
        "', 'fortran_order': False, 'shape': (", columns().num_rows, ",",
        numbers > 0 ? absl::StrCat(" ", numbers) : "", "), }");
    // Magic, version and length are 10 bytes; all together is a multiple of 64.
    dict.append(63 - (10 + dict.size()) % 64, ' ');
    dict.push_back('\n');
    const auto length = static_cast<uint16_t>(dict.size());
    std::string header("\x93NUMPY\x01\x00", 8);
    header.push_back(static_cast<char>(length & 0xff));
    header.push_back(static_cast<char>(length >> 8));
    return header + dict;
  }

  std::string Text(const Row& row) const override {
    if (columns().num_numbers == 0) {
      const int64_t class_index = row.is_bad ? -1 : row.class_index;
      return BytesOf(absl::MakeConstSpan(&class_index, 1));
    }
    if (!row.is_bad) return BytesOf(row.numbers);
    return BytesOf(absl::MakeConstSpan(
        std::vector<float>(static_cast<size_t>(columns().num_numbers),
                           std::numeric_limits<float>::quiet_NaN())));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionFile>> PredictionFile::Create(
    const std::string& path, const Columns& columns) {
  std::unique_ptr<PredictionFile> file;
  if (absl::EndsWith(path, ".csv")) {
    file = std::make_unique<CsvPredictions>(path, columns);
  } else if (absl::EndsWith(path, ".jsonl")) {
    file = std::make_unique<JsonPredictions>(path, columns);
  } else if (absl::EndsWith(path, ".npy")) {
    file = std::make_unique<NpyPredictions>(path, columns);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", path,
                     ": wanted a file that ends in .csv, .jsonl or .npy"));
  }
  RETURN_IF_ERROR(file->Open());
  return file;
}

PredictionFile::~PredictionFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  RemoveUnfinished(path_);
}

void PredictionFile::RemoveUnfinished(const std::string& path) {
  unlink((path + kTemporaryEnding).c_str());
}

std::string PredictionFile::ClassOf(const Row& row) const {
  return columns_.class_names.empty() ? absl::StrCat(row.class_index)
                                      : columns_.class_names[row.class_index];
}

absl::Status PredictionFile::Open() {
  file_ = std::fopen((path_ + kTemporaryEnding).c_str(), "wbe");
  if (file_ == nullptr) return SystemError("open");
  return Write(Header());
}

absl::Status PredictionFile::Write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) {
    return absl::OkStatus();
  }
  return SystemError("write");
}

absl::Status PredictionFile::Finish() {
  const bool is_written = std::fflush(file_) == 0 && fsync(fileno(file_)) == 0;
  if (!is_written) return SystemError("write");
  if (std::rename((path_ + kTemporaryEnding).c_str(), path_.c_str()) != 0) {
    return SystemError("rename");
  }
  std::fclose(std::exchange(file_, nullptr));
  return absl::OkStatus();
}

absl::Status PredictionFile::SystemError(const char* what) const {
  return OfFile(absl::ErrnoToStatus(
      errno,
      absl::StrCat("predictions: ", what, " '", path_, kTemporaryEnding, "'")));
}

}  // namespace muster
