#ifndef PS_SERVER_HTTP_METRICS_TEXT_H_
#define PS_SERVER_HTTP_METRICS_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ps_server/http/ps_look.h"

namespace muster {

inline constexpr char kMetricsType[] =
    "text/plain; version=0.0.4; charset=utf-8";

// The look in Prometheus' text format 0.0.4. README.md has the metrics.
std::string MetricsText(const PsLook& look);

// `text` as the value of a label, without the quotes.
std::string EscapeLabel(absl::string_view text);

// Those for whom a worker waits by `waits_for` (WorkerState): the tasks that it
// names, else "save" or "workers". Of no number of different ones.
std::vector<std::string> AwaitedBy(absl::string_view waits_for);

}  // namespace muster

#endif  // PS_SERVER_HTTP_METRICS_TEXT_H_
