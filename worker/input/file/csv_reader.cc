#include "worker/input/file/csv_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The name of an encoding that is not read, by the mark at the beginning of
// `text`, or by its zero bytes; "" of UTF-8.
absl::string_view OtherEncoding(absl::string_view text) {
  using Bytes = absl::string_view;
  const Bytes first = text.substr(0, 4);
  if (first == Bytes("\xFF\xFE\0\0", 4) || first == Bytes("\0\0\xFE\xFF", 4)) {
    return "UTF-32";
  }
  const Bytes mark = text.substr(0, 2);
  const bool has_zero =
      mark.size() == 2 && (mark[0] == '\0') != (mark[1] == '\0');
  if (mark == "\xFF\xFE" || mark == "\xFE\xFF" || has_zero) return "UTF-16";
  return "";
}

}  // namespace

absl::StatusOr<CsvReader> CsvReader::Open(const std::string& path,
                                          char delimiter) {
  const std::string context = absl::StrCat("reading '", path, "'");
  absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return Annotate(source.status(), context);
  CsvReader reader(path, delimiter, *std::move(source));
  RETURN_IF_ERROR(reader.BeginText());
  return reader;
}

CsvReader::CsvReader(std::string path, char delimiter,
                     std::unique_ptr<ByteSource> source)
    : path_(std::move(path)),
      delimiter_(delimiter),
      source_(std::move(source)),
      buffer_(kBufferBytes) {}

absl::StatusOr<bool> CsvReader::Next() {
  text_.clear();
  ends_.clear();
  has_quotes_ = false;
  record_line_ = line_;
  while (true) {
    if (next_ == end_) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) return EndFile();
    }
    const Outcome outcome = Take(static_cast<char>(buffer_[next_++]));
    if (outcome == Outcome::kMore) continue;
    if (outcome == Outcome::kError) return BadRecord(reason_);
    MakeFields();
    return true;
  }
}

std::string CsvReader::Place() const {
  return absl::StrCat("'", path_, "' line ", record_line_);
}

absl::Status CsvReader::BeginText() {
  ASSIGN_OR_RETURN(const bool any, Refill());
  if (!any) return absl::OkStatus();
  const absl::string_view text(reinterpret_cast<const char*>(buffer_.data()),
                               end_);
  const absl::string_view encoding = OtherEncoding(text);
  if (!encoding.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", path_, "': wanted UTF-8, found ", encoding,
                     ": write it anew (iconv -f ", encoding,
                     " -t UTF-8; a spreadsheet: save it as \"CSV UTF-8\")"));
  }
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    next_ = kByteOrderMark.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::Refill() {
  next_ = 0;
  end_ = 0;
  absl::StatusOr<size_t> got = source_->Read(buffer_.data(), buffer_.size());
  if (!got.ok()) {
    return Annotate(got.status(), absl::StrCat("reading ", Place()));
  }
  end_ = *got;
  return end_ > 0;
}

absl::Status CsvReader::BadRecord(absl::string_view reason) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "reading '", path_, "' line ", line_, ": ", reason,
      record_line_ == line_
          ? ""
          : absl::StrCat(" (the record began in line ", record_line_, ")")));
}

CsvReader::Outcome CsvReader::Take(char c) {
  if (text_.size() >= kMaxRecordBytes) {
    return Fail("a record of more than 16 MiB; is a quote not closed?");
  }
  if (ends_.size() >= kMaxFields) {
    return Fail("a record of more than a million fields");
  }
  switch (state_) {
    case State::kFieldStart:
      if (c != '"') return TakePlain(c);
      state_ = State::kQuoted;
      has_quotes_ = true;
      return Outcome::kMore;
    case State::kPlain:
      if (c != '"') return TakePlain(c);
      return Fail("a quote within a field that does not begin with one");
    case State::kQuoted:
      return TakeQuoted(c);
    case State::kQuoteEnd:
      return TakeAfterQuote(c);
    case State::kReturn:
      if (c == '\n') return EndLine();
      return Fail("a carriage return without a line feed");
  }
  return Outcome::kMore;
}

CsvReader::Outcome CsvReader::TakePlain(char c) {
  if (c == delimiter_) {
    EndField();
  } else if (c == '\n') {
    return EndLine();
  } else if (c == '\r') {
    // An empty line stays one: nothing ends here.
    state_ = State::kReturn;
  } else {
    state_ = State::kPlain;
    text_.push_back(c);
  }
  return Outcome::kMore;
}

CsvReader::Outcome CsvReader::TakeQuoted(char c) {
  if (c == '"') {
    state_ = State::kQuoteEnd;
    return Outcome::kMore;
  }
  if (c == '\n') ++line_;
  text_.push_back(c);
  return Outcome::kMore;
}

CsvReader::Outcome CsvReader::TakeAfterQuote(char c) {
  if (c == '"') {
    text_.push_back(c);
    state_ = State::kQuoted;
    return Outcome::kMore;
  }
  if (c == delimiter_ || c == '\n' || c == '\r') return TakePlain(c);
  return Fail("wanted the end of the field after its closing quote");
}

CsvReader::Outcome CsvReader::Fail(const char* reason) {
  reason_ = reason;
  return Outcome::kError;
}

void CsvReader::EndField() {
  ends_.push_back(text_.size());
  state_ = State::kFieldStart;
}

CsvReader::Outcome CsvReader::EndLine() {
  ++line_;
  if (IsEmpty()) {
    state_ = State::kFieldStart;
    record_line_ = line_;
    return Outcome::kMore;
  }
  EndField();
  return Outcome::kRecord;
}

absl::StatusOr<bool> CsvReader::EndFile() {
  if (state_ == State::kQuoted) return BadRecord("a quote is never closed");
  if (IsEmpty()) return false;
  EndField();
  MakeFields();
  return true;
}

bool CsvReader::IsEmpty() const {
  return ends_.empty() && text_.empty() && !has_quotes_;
}

void CsvReader::MakeFields() {
  fields_.clear();
  size_t begin = 0;
  for (const size_t end : ends_) {
    fields_.push_back(absl::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace muster
