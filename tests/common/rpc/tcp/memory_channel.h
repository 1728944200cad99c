#ifndef TESTS_COMMON_RPC_TCP_MEMORY_CHANNEL_H_
#define TESTS_COMMON_RPC_TCP_MEMORY_CHANNEL_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/byte_channel.h"

namespace muster {

// A channel whose peer is the test: gives out bytes that lie in memory, then
// has none for now, and keeps what is sent. Each call moves at most what
// `limit` says then.
class MemoryChannel : public ByteChannel {
 public:
  using Limit = std::function<size_t()>;

  explicit MemoryChannel(
      std::string incoming = "", Limit limit = [] { return SIZE_MAX; })
      : incoming_(std::move(incoming)), limit_(std::move(limit)) {}

  int fd() const override { return -1; }
  bool is_duplex() const override { return true; }
  absl::StatusOr<bool> Handshake() override { return true; }

  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) override {
    ++receives_;
    const size_t begin = given_;
    size_t left = std::min(limit_(), incoming_.size() - given_);
    for (const iovec& piece : pieces) {
      const size_t size = std::min(left, piece.iov_len);
      std::memcpy(piece.iov_base, incoming_.data() + given_, size);
      given_ += size;
      left -= size;
    }
    if (has_closed_ && begin == incoming_.size()) {
      return absl::UnavailableError("the peer closed the connection");
    }
    return given_ - begin;
  }
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override {
    ++sends_;
    const size_t begin = sent_.size();
    size_t left = limit_();
    for (const iovec& piece : pieces) {
      const size_t size = std::min(left, piece.iov_len);
      sent_.append(static_cast<const char*>(piece.iov_base), size);
      left -= size;
    }
    return sent_.size() - begin;
  }
  absl::StatusOr<bool> Flush() override {
    ++flushes_;
    return can_flush_;
  }

  bool has_received() const override { return false; }
  bool wants_to_send() const override { return false; }
  std::string PeerCertificate() const override { return ""; }

  void Append(const std::string& bytes) { incoming_ += bytes; }
  // After the bytes that it has.
  void Close() { has_closed_ = true; }
  void set_can_flush(bool can) { can_flush_ = can; }

  const std::string& sent() const { return sent_; }
  size_t given() const { return given_; }
  int receives() const { return receives_; }
  int sends() const { return sends_; }
  int flushes() const { return flushes_; }

 private:
  std::string incoming_;
  const Limit limit_;
  size_t given_ = 0;
  std::string sent_;
  bool has_closed_ = false;
  bool can_flush_ = true;
  int receives_ = 0;
  int sends_ = 0;
  int flushes_ = 0;
};

}  // namespace muster

#endif  // TESTS_COMMON_RPC_TCP_MEMORY_CHANNEL_H_
