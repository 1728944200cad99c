#include "ps_server/coordinator/stream_passes.h"

#include <iterator>

namespace muster {
namespace {

// The most passes that are kept, more than a lease's rows go through but of the
// tiniest streams.
constexpr size_t kMaxPasses = 1024;

}  // namespace

bool StreamPasses::Add(const StreamPass& pass) {
  const auto [next, is_new] =
      first_places_.try_emplace(pass.pass(), pass.first());
  if (!is_new) return false;
  // Another worker has read more, or fewer, rows: the first word holds.
  const auto after = std::next(next);
  if ((next != first_places_.begin() &&
       std::prev(next)->second >= next->second) ||
      (after != first_places_.end() && after->second <= next->second)) {
    first_places_.erase(next);
  }
  return true;
}

void StreamPasses::ForgetBefore(int64_t place) {
  while (size() > 1 && (std::next(first_places_.begin())->second <= place ||
                        size() > kMaxPasses)) {
    first_places_.erase(first_places_.begin());
  }
}

StreamPass StreamPasses::Before(int64_t place) const {
  StreamPass newest;
  for (const auto& [pass, first] : first_places_) {
    if (first > place) break;
    newest.set_pass(pass);
    newest.set_first(first);
  }
  return newest;
}

void StreamPasses::AddTo(RowLedger& ledger) const {
  for (const auto& [pass, first] : first_places_) {
    StreamPass& known = *ledger.add_passes();
    known.set_pass(pass);
    known.set_first(first);
  }
}

}  // namespace muster
