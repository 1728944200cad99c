#include "common/summary/event_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/summary/event_record.h"

namespace muster {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr char kPrefix[] = "events.out.tfevents.";
// The last one of ten digits.
constexpr int64_t kLastSecond = 9999999999;
constexpr char kWriter[] = "muster.common.summary.event_file";

// A host's name has no '/'; if ours has, it must not lead out of the folder.
std::string FileNamePart(std::string host) {
  std::replace(host.begin(), host.end(), '/', '_');
  return host.empty() ? "localhost" : host;
}

absl::Status AllowExisting(const absl::Status& status) {
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

}  // namespace

std::string EventRecord(const Event& event) {
  std::string record;
  AppendRecord(event.SerializeAsString(), &record);
  return record;
}

EventFile::EventFile(Options options) : options_(std::move(options)) {}

absl::Status EventFile::Append(absl::string_view records, int64_t first_step) {
  std::string head;
  const auto size = static_cast<int64_t>(records.size());
  // One that has only its head takes any records.
  if (bytes_ > 0 && bytes_ + size > options_.max_bytes) file_.reset();
  if (file_ == nullptr) {
    RETURN_IF_ERROR(Open());
    Event version;
    version.set_wall_time(
        absl::ToDoubleSeconds(options_.wall_now() - absl::UnixEpoch()));
    version.set_file_version(kFileVersion);
    version.mutable_source_metadata()->set_writer(kWriter);
    head = EventRecord(version);
    if (torn_) {
      // Points of these steps in the file before come again.
      version.clear_file_version();
      version.clear_source_metadata();
      version.set_step(first_step);
      version.mutable_session_log()->set_status(SessionLog::START);
      head += EventRecord(version);
    }
  }
  const absl::Status status = file_->Append(absl::StrCat(head, records));
  torn_ = !status.ok();
  bytes_ += size;
  if (!status.ok()) file_.reset();
  // A file without a record would only be litter.
  if (!status.ok() && !head.empty()) {
    options_.file_system->Remove(path_).IgnoreError();
  }
  return status;
}

absl::Status EventFile::Open() {
  RETURN_IF_ERROR(CreateFolders());
  ASSIGN_OR_RETURN(const int64_t newest, NewestSecond());
  ++count_;
  path_ = absl::StrFormat(
      "%s/%s%010d.%s.%d.%d", options_.folder, kPrefix,
      std::max(absl::ToUnixSeconds(options_.wall_now()), newest + 1),
      FileNamePart(options_.host), options_.process_id, count_);
  ASSIGN_OR_RETURN(file_, options_.file_system->CreateFile(path_));
  bytes_ = 0;
  return absl::OkStatus();
}

// In the names of the files that are there; 0 if there are none. The next file
// must be behind them, also if the clock was set back or the last process
// lived for less than a second.
absl::StatusOr<int64_t> EventFile::NewestSecond() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   options_.file_system->List(options_.folder));
  int64_t newest = 0;
  for (absl::string_view name : names) {
    int64_t second = 0;
    if (!absl::ConsumePrefix(&name, kPrefix)) continue;
    if (!absl::SimpleAtoi(name.substr(0, name.find('.')), &second)) continue;
    // One with more digits is not ours, and would be before all others.
    if (second <= kLastSecond) newest = std::max(newest, second);
  }
  return newest;
}

absl::Status EventFile::CreateFolders() {
  const std::string parent =
      options_.folder.substr(0, options_.folder.rfind('/'));
  const absl::Status status =
      AllowExisting(options_.file_system->CreateFolder(options_.folder));
  if (!absl::IsNotFound(status)) return status;
  RETURN_IF_ERROR(AllowExisting(options_.file_system->CreateFolder(parent)));
  return AllowExisting(options_.file_system->CreateFolder(options_.folder));
}

}  // namespace muster
