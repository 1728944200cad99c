#include "ps_server/http/http_connection.h"

#include <netdb.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The own end of a connection, "10.0.0.1"; an IPv4 one so, too, at a socket for
// both kinds.
std::string LocalHostOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char number[NI_MAXHOST];
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, number,
                  sizeof(number), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return std::string(absl::StripPrefix(number, "::ffff:"));
}

}  // namespace

HttpConnection::HttpConnection(Parts parts,
                               std::unique_ptr<ByteChannel> channel)
    : parts_(std::move(parts)), channel_(std::move(channel)) {
  request_.local_host = LocalHostOf(channel_->fd());
  Enter(State::kGreeting);
}

void HttpConnection::Enter(State state) {
  // The handshake and the head have one time together.
  if (state != State::kReading) {
    give_up_ = parts_.clock->Now() + kPatience;
  }
  state_ = state;
}

void HttpConnection::End() {
  state_ = State::kEnded;
  parts_.loop->Wake(this);
}

SocketHandler::Interest HttpConnection::Proceed() {
  const bool is_over = !Advance().ok();
  const bool is_late = parts_.clock->Now() >= give_up_;
  if (!is_over && is_late && state_ == State::kWaiting) {
    Say(UnavailableAnswer());
    parts_.loop->Wake(this);
  } else if (is_over || is_late) {
    state_ = State::kEnded;
  }
  Interest interest;
  interest.ended = state_ == State::kEnded;
  interest.send = state_ == State::kWriting || channel_->wants_to_send();
  interest.receive = is_reading() || state_ == State::kClosing;
  return interest;
}

absl::Status HttpConnection::Advance() {
  if (state_ == State::kGreeting) RETURN_IF_ERROR(Greet());
  if (state_ == State::kReading) RETURN_IF_ERROR(Read());
  if (state_ == State::kWaiting) TakeLook();
  if (state_ == State::kWriting) RETURN_IF_ERROR(Write());
  return state_ == State::kClosing ? ReadRest() : absl::OkStatus();
}

absl::Status HttpConnection::Greet() {
  ASSIGN_OR_RETURN(const bool is_over, channel_->Handshake());
  if (!is_over) return absl::OkStatus();
  request_.may_look = (*parts_.may_look)(channel_->PeerCertificate());
  Enter(State::kReading);
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> HttpConnection::Receive() {
  const iovec piece = {buffer_, sizeof(buffer_)};
  ASSIGN_OR_RETURN(const size_t size,
                   channel_->Receive(absl::MakeConstSpan(&piece, 1)));
  return absl::string_view(buffer_, size);
}

absl::Status HttpConnection::Read() {
  std::string& head = request_.head;
  while (head.size() < HttpPages::kMaxHeadBytes) {
    ASSIGN_OR_RETURN(const absl::string_view bytes, Receive());
    if (bytes.empty()) return absl::OkStatus();
    head.append(bytes.data(), bytes.size());
    const size_t end = head.find("\r\n\r\n");
    if (end == head.npos) continue;
    head.resize(end + 4);
    break;
  }
  TakeHead();
  return absl::OkStatus();
}

void HttpConnection::TakeHead() {
  std::optional<std::string> answer =
      parts_.pages->Answer(request_, /*look=*/nullptr);
  if (answer.has_value()) return Say(*std::move(answer));
  Enter(State::kWaiting);
  Ask();
}

void HttpConnection::Ask() {
  const Looker::Reach reach = HttpPages::TellsOfAllTasks(request_)
                                  ? Looker::Reach::kAllTasks
                                  : Looker::Reach::kOwnTask;
  (*parts_.ask)(reach, [weak = weak_from_this(), loop = parts_.loop](
                           std::shared_ptr<const PsLook> look) {
    const std::shared_ptr<HttpConnection> self = weak.lock();
    if (self == nullptr) return;
    {
      absl::MutexLock lock(&self->mu_);
      self->look_ = std::move(look);
    }
    loop->Wake(self.get());
  });
}

void HttpConnection::TakeLook() {
  std::shared_ptr<const PsLook> look;
  {
    absl::MutexLock lock(&mu_);
    look = look_;
  }
  if (look == nullptr) return;
  std::optional<std::string> answer =
      parts_.pages->Answer(request_, look.get());
  Say(answer.has_value() ? *std::move(answer) : UnavailableAnswer());
}

void HttpConnection::Say(std::string answer) {
  answer_ = std::move(answer);
  Enter(State::kWriting);
}

absl::Status HttpConnection::Write() {
  while (written_ < answer_.size()) {
    const iovec piece = {&answer_[written_], answer_.size() - written_};
    ASSIGN_OR_RETURN(const size_t sent,
                     channel_->Send(absl::MakeConstSpan(&piece, 1)));
    if (sent == 0) return absl::OkStatus();
    written_ += sent;
  }
  ASSIGN_OR_RETURN(const bool is_sent, channel_->Flush());
  if (!is_sent) return absl::OkStatus();
  shutdown(channel_->fd(), SHUT_WR);
  Enter(State::kClosing);
  return absl::OkStatus();
}

absl::Status HttpConnection::ReadRest() {
  for (;;) {
    ASSIGN_OR_RETURN(const absl::string_view bytes, Receive());
    if (bytes.empty()) return absl::OkStatus();
  }
}

}  // namespace muster
