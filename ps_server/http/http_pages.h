#ifndef PS_SERVER_HTTP_HTTP_PAGES_H_
#define PS_SERVER_HTTP_HTTP_PAGES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "httplib.h"
#include "ps_server/http/ps_look.h"

namespace muster {

// One request: its head as it came, up to the empty line, and who asks.
struct HttpRequest {
  std::string head;
  // The own end of its connection, "10.0.0.1".
  std::string local_host;
  // Who asks may look.
  bool may_look = true;
};

// The answers to HTTP requests: /metrics, /status.json, /healthz and the page.
// cpp-httplib reads the heads and writes the answers, in memory: its own
// sockets, threads and time limits are not used (README.md). Nothing is read
// of a body. Used by one thread.
class HttpPages : private httplib::Server {
 public:
  struct Options {
    // Own names, beside the loopback ones and the connection's own end: what a
    // browser was told that a foreign page's name means this task, it asks
    // under that name.
    std::vector<std::string> own_hosts;
    // Whether the task serves, for /healthz.
    std::function<bool()> serves;
  };
  // The most that is read of a head.
  static constexpr size_t kMaxHeadBytes = 8192;

  explicit HttpPages(Options options);

  // The answer, with its head; none if it wants a look, and `look` is null.
  std::optional<std::string> Answer(const HttpRequest& request,
                                    const PsLook* look);
  // Whether the answer, which wants a look, tells of the other ps tasks, too.
  static bool TellsOfAllTasks(const HttpRequest& request);

 private:
  void Route(const httplib::Request& request, httplib::Response& response);
  bool IsOwnHost(absl::string_view host) const;

  const Options options_;

  // While Answer runs.
  const HttpRequest* asked_ = nullptr;
  const PsLook* look_ = nullptr;
  bool wants_look_ = false;
};

// The answer to a request that found no time or place.
std::string UnavailableAnswer();

}  // namespace muster

#endif  // PS_SERVER_HTTP_HTTP_PAGES_H_
