// musterctl profile: the next steps of a running job, on every task, in one
// timeline.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/base/wait_reporter.h"
#include "common/checkpoint/file_system.h"
#include "common/cluster/task_id.h"
#include "common/config/local_path.h"
#include "common/config/namespace_name.h"
#include "common/process/exit_code.h"
#include "common/rpc/clock_offset.h"
#include "common/summary/merged_profile.h"
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/steering.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr int kSteps = 20;
constexpr int kMostSteps = 1000;
// A job has no more.
constexpr int kMostWorkers = 4096;
constexpr char kFile[] = "profile.json";
constexpr absl::Duration kMaxWait = absl::Minutes(2);
constexpr absl::Duration kLook = absl::Milliseconds(200);
// A ps task 0 that is started anew is back by then.
constexpr absl::Duration kAway = absl::Seconds(10);
// As long as ps tasks record.
constexpr absl::Duration kRecorded = absl::Minutes(1);

std::string NameOfPs(size_t task) {
  return TaskName(MakeTaskId(kPsJob, static_cast<int>(task)));
}

std::string Line(const absl::Status& status) {
  return EscapeForLog(status.message(), 400);
}

absl::StatusOr<int> StepsFlag(const VerbCall& call) {
  const std::string text = call.Flag("steps");
  int steps = kSteps;
  if (!text.empty() &&
      !(absl::SimpleAtoi(text, &steps) && steps >= 1 && steps <= kMostSteps)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", text, ": wanted 1 to ", kMostSteps));
  }
  return steps;
}

// The file, written beside its place until it is whole.
class TraceFile {
 public:
  // Makes it. Errors: why it cannot be written.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(FileSystem* files,
                                                           std::string path) {
    RETURN_IF_ERROR(CheckLocalPath("-o", path));
    auto file = std::unique_ptr<TraceFile>(new TraceFile(files, path));
    for (const std::string& name : {path, file->partial_}) {
      const absl::Status there = files->OpenFile(name).status();
      if (!there.ok() && !absl::IsNotFound(there)) return Refusal(path, there);
      if (there.ok() && name != path) files->Remove(name).IgnoreError();
    }
    auto made = files->CreateFile(file->partial_);
    if (!made.ok()) return Refusal(path, made.status());
    file->file_ = *std::move(made);
    return file;
  }
  ~TraceFile() {
    if (file_ != nullptr) files_->Remove(partial_).IgnoreError();
  }

  absl::Status Write(const std::string& text) {
    RETURN_IF_ERROR(file_->Append(text));
    RETURN_IF_ERROR(file_->Sync());
    if (files_->OpenFile(path_).ok()) {
      RETURN_IF_ERROR(files_->Remove(path_));
    }
    RETURN_IF_ERROR(files_->Rename(partial_, path_));
    file_.reset();
    return absl::OkStatus();
  }

 private:
  TraceFile(FileSystem* files, const std::string& path)
      : files_(files), path_(path), partial_(path + ".partial") {}

  static absl::Status Refusal(const std::string& path,
                              const absl::Status& status) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", path, ": ", status.message(),
                     "; wanted a file in a folder that is there"));
  }

  FileSystem* const files_;
  const std::string path_;
  const std::string partial_;
  std::unique_ptr<WritableFile> file_;
};

// One profile on its way.
class ProfileRun {
 public:
  ProfileRun(const VerbCall& call, NamespaceCalls* calls)
      : call_(call), calls_(*calls) {
    of_ps_.set_namespace_(call.Flag("namespace"));
  }

  // Errors: nothing was recorded, or another profile has taken its place.
  absl::Status Record(int steps, absl::Duration max_wait) {
    RETURN_IF_ERROR(BeginOnPs());
    const absl::Time begun = clock_.Now();
    BeginProfileRequest begin;
    begin.set_namespace_(of_ps_.namespace_());
    begin.set_steps(steps);
    const auto reply = calls_.BeginProfile(begin);
    absl::Status status = reply.status();
    if (status.ok()) status = AwaitWorkers(reply->number(), begun + max_wait);
    // Whoever has taken its place records on the ps tasks, too.
    if (absl::IsAborted(status)) return status;
    EndOnPs();
    RETURN_IF_ERROR(status);
    if (clock_.Now() - begun > kRecorded) {
      notes_.push_back("ps tasks recorded the first minute alone");
    }
    for (const ProfilePart& part : parts_) {
      if (part.left_out() == 0) continue;
      notes_.push_back(absl::StrCat(EscapeForLog(part.task(), 80), ": ",
                                    part.left_out(),
                                    " spans at its end found no room"));
    }
    return absl::OkStatus();
  }

  std::string Json() const { return MergeProfile(parts_, missing_); }
  std::string Describe() const {
    return absl::StrCat(parts_.size() - num_ps_, " workers and ", num_ps_,
                        " ps tasks, clocks within ", WorstClockError(parts_),
                        " us; open it in ui.perfetto.dev\n");
  }
  // Of tasks that are not in it: "/job:worker/task:1: lost".
  const std::vector<std::string>& missing() const { return missing_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  absl::StatusOr<ProfileReply> Ask(size_t ps, ProfileRequest::Action action) {
    of_ps_.set_action(action);
    return calls_.Profile(ps, of_ps_);
  }

  absl::Status BeginOnPs() {
    for (size_t i = 0; i < calls_.num_ps(); ++i) {
      const absl::Status begun = Ask(i, ProfileRequest::BEGIN).status();
      // Without it there is no profile.
      if (i == 0) RETURN_IF_ERROR(begun);
      records_.push_back(begun.ok());
      if (!begun.ok()) Miss(NameOfPs(i), Line(begun));
    }
    return absl::OkStatus();
  }

  // Takes the parts of workers until none may come any more.
  absl::Status AwaitWorkers(int64_t number, absl::Time until) {
    GetProfileRequest request;
    request.set_namespace_(of_ps_.namespace_());
    request.set_number(number);
    GetProfileReply last;
    absl::Time heard = clock_.Now();
    while (true) {
      const auto reply = calls_.GetProfile(request);
      const absl::Time now = clock_.Now();
      const bool is_away = absl::IsUnavailable(reply.status());
      if (reply.ok() && reply->has_part() && request.index() < kMostWorkers) {
        parts_.push_back(reply->part());
        request.set_index(request.index() + 1);
        continue;
      }
      if (reply.ok()) {
        last = *reply;
        heard = now;
      } else if (absl::IsNotFound(reply.status()) ||
                 (is_away && now - heard > kAway)) {
        return MissAll(last, Line(reply.status()));
      } else if (!is_away) {
        return reply.status();
      }
      if (reply.ok() && last.awaited().empty()) return MissAll(last, "");
      if (now >= until) return MissAll(last, "it has not sent its steps yet");
      Say(last);
      absl::Notification().WaitForNotificationWithTimeout(kLook);
    }
  }

  // Names those that are not in it; who was awaited, with `why`.
  absl::Status MissAll(const GetProfileReply& last, const std::string& why) {
    for (const std::string& missing : last.missing()) {
      missing_.push_back(EscapeForLog(missing, 200));
    }
    for (const TaskId& task : last.awaited()) {
      Miss(EscapeForLog(TaskName(task), 80), why);
    }
    return absl::OkStatus();
  }

  void Miss(const std::string& task, const std::string& why) {
    missing_.push_back(absl::StrCat(task, ": ", why));
  }

  void Say(const GetProfileReply& last) {
    const std::string line = waiting_.WaitFor(
        last.awaited().empty()
            ? NameOfPs(0)
            : absl::StrCat("the steps of ", last.awaited_size(), " workers, ",
                           EscapeForLog(TaskName(last.awaited(0)), 80),
                           " first"),
        clock_.Now());
    if (!line.empty()) call_.output.reporter.Info(line);
  }

  // The clock of a ps task.
  absl::StatusOr<ClockOffset> ReadClock(size_t ps) {
    ClockOffset offset;
    for (int look = 0; look < ClockOffset::kLooks; ++look) {
      const absl::Time asked = clock_.Now();
      ASSIGN_OR_RETURN(const ProfileReply reply,
                       Ask(ps, ProfileRequest::READ_CLOCK));
      offset.Add(asked, reply.now_us(), clock_.Now());
    }
    return offset;
  }

  absl::StatusOr<ProfilePart> EndOn(size_t ps) {
    ASSIGN_OR_RETURN(ProfileReply reply, Ask(ps, ProfileRequest::END));
    ProfilePart part = std::move(*reply.mutable_part());
    if (ps == 0) return part;
    ASSIGN_OR_RETURN(const ClockOffset first, ReadClock(0));
    ASSIGN_OR_RETURN(const ClockOffset own, ReadClock(ps));
    part.set_to_first_ps_us(first.offset_us() - own.offset_us());
    part.set_error_us(first.error_us() + own.error_us());
    return part;
  }

  void EndOnPs() {
    for (size_t i = 0; i < calls_.num_ps(); ++i) {
      if (!records_[i]) continue;
      absl::StatusOr<ProfilePart> part = EndOn(i);
      if (!part.ok()) {
        Miss(NameOfPs(i), Line(part.status()));
        continue;
      }
      ++num_ps_;
      parts_.push_back(*std::move(part));
    }
  }

  const VerbCall& call_;
  NamespaceCalls& calls_;
  const MonotonicClock clock_;
  WaitReporter waiting_;
  ProfileRequest of_ps_;
  // By ps task.
  std::vector<bool> records_;
  std::vector<ProfilePart> parts_;
  size_t num_ps_ = 0;
  std::vector<std::string> missing_;
  std::vector<std::string> notes_;
};

absl::Status Profile(const VerbCall& call, VerbResult* result) {
  RETURN_IF_ERROR(CheckNamespaceName("--namespace", call.Flag("namespace")));
  ASSIGN_OR_RETURN(const int steps, StepsFlag(call));
  ASSIGN_OR_RETURN(const absl::Duration max_wait, MaxWaitFlag(call, kMaxWait));
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook));
  const std::string path = call.Flag("o").empty() ? kFile : call.Flag("o");
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file,
                   TraceFile::Create(call.file_system, path));
  ProfileRun run(call, &calls);
  const absl::Status recorded = run.Record(steps, max_wait);
  if (!recorded.ok()) return SayIfAway(recorded, result);
  const std::string json = run.Json();
  RETURN_IF_ERROR(file->Write(json));
  result->out = absl::StrCat("wrote ", path, ", ", json.size() / 1000,
                             " kB: ", steps, " steps of ", run.Describe());
  for (const std::string& note : run.notes()) {
    absl::StrAppend(&result->error, "musterctl profile: ", note, "\n");
  }
  for (const std::string& task : run.missing()) {
    absl::StrAppend(&result->error, "musterctl profile: not in it: ", task,
                    "\n");
    result->exit_code = kExitRetryable;
  }
  return absl::OkStatus();
}

std::vector<Verb::Flag> Flags() {
  std::vector<Verb::Flag> flags = NamespaceCalls::Flags();
  flags.push_back({"namespace", "The job's namespace; default: the nameless."});
  flags.push_back(
      {"steps", absl::StrCat("Steps of each worker; default ", kSteps, ".")});
  flags.push_back({"o", absl::StrCat("The file; default ", kFile, ".")});
  flags.push_back({"max_wait",
                   "Seconds to wait for the workers' steps; default 120. Then "
                   "the file has what there is."});
  return flags;
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "profile",
    {"",
     "records the next steps of a running job, on every task, in one "
     "timeline.\n"
     "  Workers: pull, compute, push, and each part on its way. ps tasks: "
     "parts that wait, are\n"
     "  checked, applied and answered; rounds and saves. An arrow leads from "
     "a part's push to its\n"
     "  update. The clocks are those of /job:ps/task:0; how far each may be "
     "off is beside the\n"
     "  task's name. Open it in ui.perfetto.dev. Tasks that are lost meanwhile "
     "are named, and\n"
     "  the exit code is 138.",
     Flags(), 0, 0, &Profile});

}  // namespace
}  // namespace muster
