#include "common/summary/event_file_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

EventFileWriter::EventFileWriter(Options options)
    : options_(std::move(options)),
      file_(options_.file),
      thread_(options_.clock->StartThread([this] { ThreadLoop(); })) {}

EventFileWriter::~EventFileWriter() {
  absl::MutexLock lock(&mu_);
  stop_ = true;
}

void EventFileWriter::Add(int64_t step, Summary summary) {
  if (summary.value().empty()) return;
  Event event;
  event.set_step(step);
  *event.mutable_summary() = std::move(summary);
  AddEvent(std::move(event));
}

void EventFileWriter::AddGraph(int64_t step, const GraphDef& graph) {
  Event event;
  event.set_step(step);
  event.set_graph_def(graph.SerializeAsString());
  AddEvent(std::move(event));
}

void EventFileWriter::AddSessionStart(int64_t step) {
  Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(SessionLog::START);
  AddEvent(std::move(event));
}

void EventFileWriter::AddEvent(Event event) {
  event.set_wall_time(absl::ToDoubleSeconds(WallNow() - absl::UnixEpoch()));
  const std::string record = EventRecord(event);
  absl::MutexLock lock(&mu_);
  if (static_cast<int64_t>(waiting_.records.size() + record.size()) >
      options_.max_waiting_bytes) {
    ++dropped_;
    return;
  }
  waiting_.first_step = waiting_.events == 0
                            ? event.step()
                            : std::min(waiting_.first_step, event.step());
  waiting_.records += record;
  ++waiting_.events;
}

void EventFileWriter::Flush() {
  absl::MutexLock lock(&mu_);
  const int64_t ours = ++asked_;
  const auto is_done = [this, ours]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return done_ >= ours;
  };
  options_.clock->Await(&mu_, absl::Condition(&is_done),
                        absl::InfiniteDuration());
}

void EventFileWriter::ThreadLoop() {
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || asked_ > done_;
  };
  bool last = false;
  while (!last) {
    int64_t asked;
    {
      absl::MutexLock lock(&mu_);
      options_.clock->Await(&mu_, absl::Condition(&awake),
                            options_.flush_every);
      asked = asked_;
      last = stop_;
    }
    WriteWaiting();
    absl::MutexLock lock(&mu_);
    done_ = asked;
  }
}

void EventFileWriter::WriteWaiting() {
  Batch batch;
  {
    absl::MutexLock lock(&mu_);
    // The end is the last chance.
    const bool may_try = stop_ || options_.clock->Now() >= retry_at_;
    if (waiting_.events == 0 || !may_try) return;
    batch = std::exchange(waiting_, {});
  }
  const absl::Status status = file_.Append(batch.records, batch.first_step);
  std::string line;
  {
    absl::MutexLock lock(&mu_);
    line = Note(status, options_.clock->Now());
    if (!status.ok()) {
      // It comes again, before what was added meanwhile.
      if (waiting_.events > 0) {
        batch.first_step = std::min(batch.first_step, waiting_.first_step);
      }
      batch.records += waiting_.records;
      batch.events += waiting_.events;
      waiting_ = std::move(batch);
    }
  }
  if (line.empty()) return;
  options_.reporter.Report(status.ok() ? Reporter::kInfo : Reporter::kError,
                           line);
}

std::string EventFileWriter::Note(const absl::Status& status, absl::Time now) {
  if (!status.ok()) {
    retry_at_ = now + options_.retry_after;
    if (std::exchange(failing_, true)) return "";
    return absl::StrCat(
        "summaries are not written, training goes on: ", status.message(),
        "; tried again every ", absl::FormatDuration(options_.retry_after));
  }
  if (!std::exchange(failing_, false) && dropped_ == 0) return "";
  return absl::StrCat("summaries are written again, into ", file_.path(),
                      "; events lost: ", std::exchange(dropped_, 0));
}

}  // namespace muster
