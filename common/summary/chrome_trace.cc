#include "common/summary/chrome_trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/json_quote.h"

namespace muster {
namespace {

double Microseconds(absl::Duration duration) {
  return absl::ToDoubleMicroseconds(duration);
}

}  // namespace

ChromeTrace::ChromeTrace(absl::string_view process_name, int64_t process_id)
    : process_id_(process_id) {
  Add(absl::StrFormat(
      R"({"ph":"M","name":"process_name","pid":%d,"args":{"name":%s}})",
      process_id_, JsonQuote(process_name)));
}

void ChromeTrace::NameLane(int lane, absl::string_view name) {
  Add(absl::StrFormat(
      R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s}})",
      process_id_, lane, JsonQuote(name)));
  // The lanes in this order, not by name.
  Add(absl::StrFormat(
      R"({"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,)"
      R"("args":{"sort_index":%d}})",
      process_id_, lane, lane));
}

void ChromeTrace::AddSpan(int lane, absl::string_view name, absl::Time begin,
                          absl::Time end, int64_t step) {
  AddSpanWith(lane, name, begin, end, absl::StrFormat(R"("step":%d)", step));
}

void ChromeTrace::AddTransfer(int lane, absl::string_view name,
                              absl::Time begin, absl::Time end, int64_t step,
                              int64_t bytes) {
  AddSpanWith(lane, name, begin, end,
              absl::StrFormat(R"("step":%d,"bytes":%d)", step, bytes));
}

void ChromeTrace::AddSpanWith(int lane, absl::string_view name,
                              absl::Time begin, absl::Time end,
                              absl::string_view args) {
  Add(absl::StrFormat(R"({"ph":"X","name":%s,"cat":"step","pid":%d,"tid":%d,)"
                      R"("ts":%.3f,"dur":%.3f,"args":{%s}})",
                      JsonQuote(name), process_id_, lane,
                      Microseconds(begin - absl::UnixEpoch()),
                      Microseconds(end - begin), args));
}

std::string ChromeTrace::Json() const {
  return absl::StrCat("{\"traceEvents\":[\n", events_,
                      "\n],\"displayTimeUnit\":\"ms\"}\n");
}

void ChromeTrace::Add(absl::string_view event) {
  absl::StrAppend(&events_, events_.empty() ? "" : ",\n", event);
}

}  // namespace muster
