#include "common/rpc/tcp/socket_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace muster {
namespace {

uint32_t EventsOf(const SocketHandler::Interest& interest) {
  return (interest.receive ? EPOLLIN : 0u) | (interest.send ? EPOLLOUT : 0u);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketLoop>> SocketLoop::Create() {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (!epoll.valid() || !bell.valid() ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no descriptors to serve connections: ", strerror(errno)));
  }
  return absl::WrapUnique(new SocketLoop(std::move(epoll), std::move(bell)));
}

SocketLoop::SocketLoop(FileDescriptor epoll, FileDescriptor bell)
    : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

void SocketLoop::Add(std::shared_ptr<SocketHandler> handler) {
  SocketHandler* const key = handler.get();
  epoll_event event = {};
  event.data.ptr = key;
  {
    absl::MutexLock lock(&mu_);
    entries_[key] = {std::move(handler), 0};
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, key->fd(), &event);
  Wake(key);
}

void SocketLoop::Wake(SocketHandler* handler) {
  {
    absl::MutexLock lock(&mu_);
    woken_.push_back(handler);
    if (std::exchange(has_rung_, true)) return;
  }
  RingBell();
}

void SocketLoop::RingBell() const { eventfd_write(bell_.get(), 1); }

void SocketLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopped_ = true;
  }
  RingBell();
}

int SocketLoop::size() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(entries_.size());
}

void SocketLoop::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      if (is_stopped_) break;
    }
    RunOnce(kTick);
  }
  absl::flat_hash_map<SocketHandler*, Entry> left;
  absl::MutexLock lock(&mu_);
  left.swap(entries_);
}

void SocketLoop::RunOnce(absl::Duration patience) {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                 static_cast<int>(absl::ToInt64Milliseconds(patience)));
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      eventfd_t rung;
      eventfd_read(bell_.get(), &rung);
    } else {
      Give(static_cast<SocketHandler*>(events[i].data.ptr));
    }
  }
  for (SocketHandler* const handler : Woken()) Give(handler);
}

std::vector<SocketHandler*> SocketLoop::Woken() {
  const absl::Time now = SystemClock()->Now();
  std::vector<SocketHandler*> woken;
  absl::MutexLock lock(&mu_);
  woken.swap(woken_);
  has_rung_ = false;
  if (now < next_tick_) return woken;
  next_tick_ = now + kTick;
  woken.clear();
  for (const auto& [key, entry] : entries_) woken.push_back(key);
  return woken;
}

std::shared_ptr<SocketHandler> SocketLoop::Find(SocketHandler* handler) const {
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(handler);
  return found == entries_.end() ? nullptr : found->second.handler;
}

void SocketLoop::Give(SocketHandler* handler) {
  // It may have ended, and goes when this returns.
  const std::shared_ptr<SocketHandler> held = Find(handler);
  if (held != nullptr) SetInterest(handler, held->Proceed());
}

void SocketLoop::SetInterest(SocketHandler* handler,
                             const SocketHandler::Interest& interest) {
  std::shared_ptr<SocketHandler> ended;
  const uint32_t events = EventsOf(interest);
  bool has_changed = false;
  {
    absl::MutexLock lock(&mu_);
    const auto found = entries_.find(handler);
    if (found == entries_.end()) return;
    if (interest.ended) {
      ended = std::move(found->second.handler);
      entries_.erase(found);
    } else {
      has_changed = std::exchange(found->second.events, events) != events;
    }
  }
  if (ended != nullptr) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended->fd(), nullptr);
    return;
  }
  if (has_changed) {
    epoll_event event = {};
    event.events = events;
    event.data.ptr = handler;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, handler->fd(), &event);
  }
  if (interest.again) Wake(handler);
}

}  // namespace muster
