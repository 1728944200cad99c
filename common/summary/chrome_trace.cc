#include "common/summary/chrome_trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/json_quote.h"

namespace muster {
namespace {

double Microseconds(absl::Time when) {
  return absl::ToDoubleMicroseconds(when - absl::UnixEpoch());
}

}  // namespace

ChromeTrace::ChromeTrace(absl::string_view process_name, int64_t process_id)
    : process_id_(process_id) {
  NameProcess(process_name);
}

void ChromeTrace::NameProcess(absl::string_view name) {
  AddEvent(absl::StrFormat(
      R"({"ph":"M","name":"process_name","pid":%d,"args":{"name":%s}})",
      process_id_, JsonQuote(name)));
}

void ChromeTrace::BeginProcess(absl::string_view name, int64_t process_id,
                               absl::string_view label) {
  process_id_ = process_id;
  NameProcess(name);
  AddEvent(absl::StrFormat(R"({"ph":"M","name":"process_sort_index","pid":%d,)"
                           R"("args":{"sort_index":%d}})",
                           process_id_, process_id_));
  AddEvent(absl::StrFormat(
      R"({"ph":"M","name":"process_labels","pid":%d,"args":{"labels":%s}})",
      process_id_, JsonQuote(label)));
}

void ChromeTrace::NameLane(int lane, absl::string_view name) {
  AddEvent(absl::StrFormat(
      R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s}})",
      process_id_, lane, JsonQuote(name)));
  // The lanes in this order, not by name.
  AddEvent(absl::StrFormat(
      R"({"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,)"
      R"("args":{"sort_index":%d}})",
      process_id_, lane, lane));
}

void ChromeTrace::Add(const TimelineSpan& span) {
  const std::string bytes =
      span.bytes == 0 ? "" : absl::StrCat(",\"bytes\":", span.bytes);
  AddEvent(absl::StrFormat(
      R"({"ph":"X","name":%s,"cat":"step","pid":%d,"tid":%d,)"
      R"("ts":%.3f,"dur":%.3f,"args":{"step":%d%s}})",
      JsonQuote(span.name), process_id_, span.lane, Microseconds(span.begin),
      absl::ToDoubleMicroseconds(span.end - span.begin), span.step, bytes));
}

void ChromeTrace::AddArrow(uint64_t number, const Place& from,
                           const Place& to) {
  const auto add = [&](absl::string_view kind, const Place& place) {
    AddEvent(absl::StrFormat(
        R"({"ph":%s,"name":"push","cat":"push","id":"%x","pid":%d,"tid":%d,)"
        R"("ts":%.3f})",
        kind, number, place.process_id, place.lane, Microseconds(place.when)));
  };
  add(R"("s")", from);
  add(R"("f","bp":"e")", to);
}

std::string ChromeTrace::Json() const {
  return absl::StrCat("{\"traceEvents\":[\n", events_,
                      "\n],\"displayTimeUnit\":\"ms\"}\n");
}

void ChromeTrace::AddEvent(absl::string_view event) {
  absl::StrAppend(&events_, events_.empty() ? "" : ",\n", event);
}

}  // namespace muster
