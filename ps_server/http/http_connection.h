#ifndef PS_SERVER_HTTP_HTTP_CONNECTION_H_
#define PS_SERVER_HTTP_HTTP_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/socket_loop.h"
#include "ps_server/http/http_pages.h"
#include "ps_server/http/looker.h"

namespace muster {

// One connection, for one request. On its loop's thread, but for what it is
// given by a look.
class HttpConnection : public SocketHandler,
                       public std::enable_shared_from_this<HttpConnection> {
 public:
  // For the head of a request, then for what it asks, then for the answer to be
  // taken: who sends or reads a byte now and then does not stay.
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  // All outlive the connection but the loop.
  struct Parts {
    HttpPages* pages = nullptr;
    const std::function<void(Looker::Reach, Looker::Done)>* ask = nullptr;
    // Whether the holder of a certificate may look; "" where there is none.
    const std::function<bool(absl::string_view pem)>* may_look = nullptr;
    const Clock* clock = nullptr;
    std::shared_ptr<SocketLoop> loop;
  };

  HttpConnection(Parts parts, std::unique_ptr<ByteChannel> channel);

  int fd() const override { return channel_->fd(); }
  Interest Proceed() override;

  // Its head has not come.
  bool is_reading() const { return state_ <= State::kReading; }
  // It makes room for another one. It proceeds soon.
  void End();

 private:
  enum class State {
    kGreeting,
    kReading,
    // For a look.
    kWaiting,
    kWriting,
    // What the peer has still sent is read: unread at the close it would take
    // back the answer.
    kClosing,
    kEnded,
  };

  // Goes on as far as it can. Errors: the connection's end.
  absl::Status Advance();
  absl::Status Greet();
  absl::Status Read();
  // The head has come, or as much as is taken.
  void TakeHead();
  void Ask();
  void TakeLook();
  void Say(std::string answer);
  absl::Status Write();
  absl::Status ReadRest();
  absl::StatusOr<absl::string_view> Receive();
  void Enter(State state);

  const Parts parts_;
  const std::unique_ptr<ByteChannel> channel_;
  State state_ = State::kGreeting;
  absl::Time give_up_;
  HttpRequest request_;
  std::string answer_;
  size_t written_ = 0;
  char buffer_[4096];

  absl::Mutex mu_;
  std::shared_ptr<const PsLook> look_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // PS_SERVER_HTTP_HTTP_CONNECTION_H_
