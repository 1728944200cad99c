#include "ps_server/http/http_pages.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/cluster/address.h"
#include "openssl/sha.h"
#include "ps_server/http/metrics_text.h"
#include "ps_server/http/page.h"
#include "ps_server/http/status_json.h"

namespace muster {
namespace {

constexpr absl::string_view kStatusPath = "/status.json";

// A request's bytes in, an answer's out. Without a socket: httplib 0.11.4
// answers 500 where its number is 1,024 or more.
class MemoryStream : public httplib::Stream {
 public:
  MemoryStream(absl::string_view in, std::string local_host)
      : in_(in), local_host_(std::move(local_host)) {}

  const std::string& out() const { return out_; }

  bool is_readable() const override { return !in_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = in_.copy(bytes, size);
    in_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    out_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = local_host_;
    port = 0;
  }
  socket_t socket() const override { return 0; }

 private:
  absl::string_view in_;
  const std::string local_host_;
  std::string out_;
};

// The head without the lines that cost more than they are worth: httplib
// compresses for who accepts it, with Brotli's slowest level, and gives as many
// copies of a body as there are ranges.
std::string WithoutCostlyLines(absl::string_view head) {
  std::string kept;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    const absl::string_view line =
        head.substr(0, end == head.npos ? head.npos : end + 1);
    head.remove_prefix(line.size());
    if (!absl::StartsWithIgnoreCase(line, "range:") &&
        !absl::StartsWithIgnoreCase(line, "accept-encoding:")) {
      absl::StrAppend(&kept, line);
    }
  }
  return kept;
}

// The text between <TAG> and </TAG> of the page.
absl::string_view InlineText(absl::string_view tag) {
  absl::string_view page = kPage;
  page.remove_prefix(page.find(absl::StrCat("<", tag, ">")) + tag.size() + 2);
  return page.substr(0, page.find(absl::StrCat("</", tag, ">")));
}

std::string HashSource(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest);
  return absl::StrCat("'sha256-",
                      absl::Base64Escape(absl::string_view(
                          reinterpret_cast<char*>(digest), sizeof(digest))),
                      "'");
}

httplib::Headers SafeHeaders() {
  return {
      {"Content-Security-Policy",
       absl::StrCat("default-src 'self'; script-src ",
                    HashSource(InlineText("script")), "; style-src ",
                    HashSource(InlineText("style")),
                    "; base-uri 'none'; form-action 'none'; "
                    "frame-ancestors 'none'")},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-store"},
  };
}

// "[::1]:80" -> "::1".
std::string HostOf(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "[")) {
    return std::string(text.substr(0, text.find(']')));
  }
  text = text.substr(0, text.find(':'));
  absl::ConsumeSuffix(&text, ".");
  return absl::AsciiStrToLower(text);
}

void Say(int status, absl::string_view line, httplib::Response& response) {
  response.status = status;
  response.set_content(absl::StrCat(line, "\n"), "text/plain; charset=utf-8");
}

}  // namespace

HttpPages::HttpPages(Options options) : options_(std::move(options)) {
  set_default_headers(SafeHeaders());
  set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        Route(request, response);
        return HandlerResponse::Handled;
      });
}

bool HttpPages::IsOwnHost(absl::string_view host) const {
  const std::string name = HostOf(host);
  if (name.empty()) return false;
  if (IsLoopback({name}) || name == asked_->local_host) return true;
  for (const std::string& own : options_.own_hosts) {
    if (absl::EqualsIgnoreCase(name, own)) return true;
  }
  return false;
}

void HttpPages::Route(const httplib::Request& request,
                      httplib::Response& response) {
  if (request.get_header_value_count("Host") != 1 ||
      !IsOwnHost(request.get_header_value("Host"))) {
    return Say(421,
               "this is not the host that was asked for (Host): ask for an "
               "address of this ps task, or localhost",
               response);
  }
  if (!asked_->may_look) {
    return Say(403, "the certificate is neither a viewer's nor an admin's",
               response);
  }
  if (request.method != "GET") {
    response.set_header("Allow", "GET");
    return Say(405, "only GET is answered", response);
  }
  if (request.path == "/") {
    response.set_content(std::string(kPage), "text/html; charset=utf-8");
  } else if (request.path == "/healthz") {
    const bool serves = options_.serves();
    Say(serves ? 200 : 503, serves ? "ok" : "ending", response);
  } else if (request.path != "/metrics" && request.path != kStatusPath) {
    Say(404, "there are /, /metrics, /status.json and /healthz", response);
  } else if (look_ == nullptr) {
    wants_look_ = true;
  } else if (request.path == kStatusPath) {
    response.set_content(StatusJson(*look_), "application/json");
  } else {
    response.set_content(MetricsText(*look_), kMetricsType);
  }
}

std::optional<std::string> HttpPages::Answer(const HttpRequest& request,
                                             const PsLook* look) {
  asked_ = &request;
  look_ = look;
  wants_look_ = false;
  const std::string head = WithoutCostlyLines(request.head);
  MemoryStream stream(head, request.local_host);
  bool is_closed = false;
  process_request(stream, /*close_connection=*/true, is_closed,
                  /*setup_request=*/nullptr);
  if (wants_look_) return std::nullopt;
  return stream.out();
}

bool HttpPages::TellsOfAllTasks(const HttpRequest& request) {
  return absl::StartsWith(request.head, absl::StrCat("GET ", kStatusPath));
}

std::string UnavailableAnswer() {
  constexpr absl::string_view kText =
      "the ps task is busy, as with the load of a large model; ask again\n";
  return absl::StrCat(
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Length: ",
      kText.size(), "\r\n\r\n", kText);
}

}  // namespace muster
