#include "worker/session/peer_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// With the pauses of the connection (channel_settings.h) less than a second.
constexpr absl::Duration kLongestHelloPause = absl::Milliseconds(500);

}  // namespace

std::string PsName(int ps_task, const std::string& address) {
  return absl::StrCat("/job:ps/task:", ps_task, address.empty() ? "" : " at ",
                      address);
}

std::string WithoutPsName(absl::string_view text, const std::string& ps) {
  return absl::StrReplaceAll(text, {{absl::StrCat(ps, ": "), ""}});
}

absl::Duration RetryPause(int failures) {
  // 2^5 * 50 ms is beyond the longest pause already.
  return std::min(kLongestPause, kFirstPause * (1 << std::min(failures, 5)));
}

absl::Duration HelloPause(int failures) {
  return std::min(kLongestHelloPause, RetryPause(failures));
}

PeerTable::PeerTable(std::vector<std::string> addresses)
    : peers_(addresses.size()), replies_(addresses.size()) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    peers_[i].address = std::move(addresses[i]);
  }
}

std::vector<int> PeerTable::TakeDue(absl::Time now) {
  std::vector<int> due;
  for (int i = 0; i < size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.greeted || peer.in_flight || peer.not_before > now) continue;
    peer.in_flight = true;
    due.push_back(i);
  }
  return due;
}

bool PeerTable::WantsTakeover() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.takeover != 0; });
}

void PeerTable::OnReply(int ps_task, const absl::StatusOr<HelloReply>& reply,
                        absl::Time now) {
  Peer& peer = peers_[ps_task];
  peer.in_flight = false;
  if (reply.ok() && reply->takeover() != 0) {
    // A second number in a row: somebody else takes over at the same time.
    const bool is_first = peer.takeover == 0;
    peer.not_before = is_first ? now : now + HelloPause(peer.failures++);
    peer.takeover = reply->takeover();
    peer.cause = "another start of this task is known there";
    return;
  }
  if (reply.ok()) {
    peer.greeted = true;
    peer.takeover = 0;
    peer.failures = 0;
    replies_[ps_task] = *reply;
    return;
  }
  peer.cause =
      WithoutPsName(reply.status().message(), PsName(ps_task, peer.address));
  peer.not_before = now + HelloPause(peer.failures);
  ++peer.failures;
}

void PeerTable::ResetAll() {
  for (int i = 0; i < size(); ++i) Reset(i, absl::InfinitePast());
}

void PeerTable::Reset(int ps_task, absl::Time not_before) {
  Peer& peer = peers_[ps_task];
  if (!peer.greeted) return;
  peer.greeted = false;
  peer.not_before = not_before;
  peer.cause = "no answer yet";
}

bool PeerTable::IsAnyGreetedBut(int ps_task) const {
  for (int i = 0; i < size(); ++i) {
    if (i != ps_task && peers_[i].greeted) return true;
  }
  return false;
}

bool PeerTable::AllGreeted() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.greeted; });
}

void PeerTable::SetModelEpoch(int64_t model_epoch) {
  for (HelloReply& reply : replies_) {
    reply.mutable_state()->set_model_epoch(model_epoch);
  }
}

std::string PeerTable::DescribeMissing() const {
  std::string text;
  for (int i = 0; i < size(); ++i) {
    const Peer& peer = peers_[i];
    if (peer.greeted) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", PsName(i, peer.address),
                    " (", peer.cause, ")");
  }
  return text;
}

absl::Time PeerTable::next_due() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Peer& peer : peers_) {
    if (peer.greeted || peer.in_flight) continue;
    next = std::min(next, peer.not_before);
  }
  return next;
}

}  // namespace muster
