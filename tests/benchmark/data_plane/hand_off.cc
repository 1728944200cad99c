#include "tests/benchmark/data_plane/hand_off.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/shared_memory/doorbell.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/local_socket.h"
#include "common/shared_memory/memory_segment.h"
#include "common/shared_memory/slot_ring.h"
#include "tests/benchmark/data_plane/server_process.h"

namespace muster {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(5);
// From the mark that a reader is about to sleep until it does.
constexpr absl::Duration kFallAsleep = absl::Microseconds(50);

// Keeps this thread on the machine's first or second core. Left alone,
// both ends may share one, where a reader that spins only delays its writer.
void TakeCore(int number) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || number-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// One end: writes one ring and reads the other.
class RingEnd {
 public:
  RingEnd(const FileDescriptor* socket, SharedRing* written, SharedRing* read,
          Readers readers)
      : socket_(socket),
        written_(written),
        writer_(written),
        reader_(read),
        readers_(readers) {}

  // Hands over an entry. `kind` and `fields_bytes` are for the other end.
  void Publish(uint32_t kind, uint32_t fields_bytes) {
    if (writer_.Publish({/*slot=*/0, kind, fields_bytes, /*data_bytes=*/0,
                         /*timeout_ms=*/0})) {
      RingBell(*socket_);
    }
  }

  absl::StatusOr<RingEntry> Await() {
    RingEvent event = RingEvent::kTimeout;
    // A bell that was left over ends a wait early.
    while (event == RingEvent::kTimeout) {
      event = AwaitEntry(&reader_, *socket_, kLimit);
    }
    if (event == RingEvent::kPeerGone) {
      return absl::UnavailableError("hand-off: the other end is gone");
    }
    ASSIGN_OR_RETURN(const std::optional<RingEntry> entry, reader_.Take());
    return *entry;
  }

  // If readers are to sleep: waits until the other end sleeps. Returns how
  // long that took.
  absl::Duration LetOtherSleep() const {
    if (readers_ == Readers::kSpin) return absl::ZeroDuration();
    const Clock& clock = *SystemClock();
    const absl::Time start = clock.Now();
    absl::Time asleep = absl::InfiniteFuture();
    for (absl::Time now = start;
         now < asleep + kFallAsleep && now < start + kLimit;
         now = clock.Now()) {
      std::this_thread::yield();
      const bool sleeps = written_->reader_sleeps.load() != 0;
      if (!sleeps) asleep = absl::InfiniteFuture();
      if (sleeps && asleep == absl::InfiniteFuture()) asleep = now;
    }
    return clock.Now() - start;
  }

 private:
  const FileDescriptor* const socket_;
  const SharedRing* const written_;
  RingWriter writer_;
  RingReader reader_;
  const Readers readers_;
};

class HandOff : public Workload {
 public:
  HandOff(std::unique_ptr<ServerProcess> server, SharedPeer peer,
          Readers readers)
      : server_(std::move(server)),
        peer_(std::move(peer)),
        end_(&peer_.socket, &RingsOf(peer_.segment.data())->requests,
             &RingsOf(peer_.segment.data())->answers, readers) {}

  absl::Status Step(int) override {
    idle_ = end_.LetOtherSleep();
    end_.Publish(++sent_, /*fields_bytes=*/0);
    ASSIGN_OR_RETURN(const RingEntry answer, end_.Await());
    idle_ += absl::Nanoseconds(answer.fields_bytes);
    answered_ += answer.kind == sent_ ? 1 : 0;
    return absl::OkStatus();
  }

  absl::Status Check() override {
    if (answered_ == sent_) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("hand-off: ", sent_, " entries, ",
                                            answered_, " right answers"));
  }

  int64_t bytes_per_step() const override { return 2 * sizeof(RingEntry); }
  absl::Duration idle() const override { return idle_; }
  std::vector<pid_t> processes() const override { return {server_->pid()}; }

 private:
  const std::unique_ptr<ServerProcess> server_;
  // Its end wakes the server.
  const SharedPeer peer_;
  RingEnd end_;
  absl::Duration idle_;
  uint32_t sent_ = 0;
  uint32_t answered_ = 0;
};

absl::StatusOr<FileDescriptor> AcceptOne(const FileDescriptor& listener) {
  pollfd poll = {listener.get(), POLLIN, 0};
  ::poll(&poll, 1, static_cast<int>(absl::ToInt64Milliseconds(kLimit)));
  FileDescriptor socket(
      accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "hand-off: accept");
  return socket;
}

absl::Status Answer(const FileDescriptor& listener, const std::string& token,
                    Readers readers) {
  ASSIGN_OR_RETURN(const FileDescriptor socket, AcceptOne(listener));
  RETURN_IF_ERROR(AwaitClaim(socket, token).status());
  ASSIGN_OR_RETURN(const MemorySegment segment, OfferSegment(socket));
  SharedRings* const rings = RingsOf(segment.data());
  RingEnd end(&socket, &rings->answers, &rings->requests, readers);
  TakeCore(1);
  for (;;) {
    ASSIGN_OR_RETURN(const RingEntry entry, end.Await());
    const absl::Duration idle = end.LetOtherSleep();
    end.Publish(entry.kind,
                static_cast<uint32_t>(absl::ToInt64Nanoseconds(idle)));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeHandOff(Readers readers) {
  ASSIGN_OR_RETURN(std::unique_ptr<ServerProcess> server,
                   ServerProcess::Start({readers == Readers::kSpin
                                             ? "--serve=hand_off_spinning"
                                             : "--serve=hand_off_parked"}));
  const std::vector<std::string> offer =
      absl::StrSplit(server->address(), absl::MaxSplits(':', 1));
  if (offer.size() != 2) {
    return absl::InternalError("hand-off: the server gave no token");
  }
  ASSIGN_OR_RETURN(SharedPeer peer, JoinSegment(offer[0], offer[1]));
  TakeCore(0);
  return std::make_unique<HandOff>(std::move(server), std::move(peer), readers);
}

absl::Status ServeHandOff(Readers readers) {
  const std::string name = absl::StrCat("muster-benchmark-", NewSecret());
  const std::string token = NewSecret();
  ASSIGN_OR_RETURN(const FileDescriptor listener, ListenLocal(name));
  // It ends with its peer, or without one after kLimit.
  std::thread answerer([&] {
    const absl::Status ended = Answer(listener, token, readers);
    static_cast<void>(ended);
  });
  ServeUntilInputEnds(absl::StrCat(name, ":", token));
  answerer.join();
  return absl::OkStatus();
}

}  // namespace muster
