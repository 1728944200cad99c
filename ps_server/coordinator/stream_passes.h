#ifndef PS_SERVER_COORDINATOR_STREAM_PASSES_H_
#define PS_SERVER_COORDINATOR_STREAM_PASSES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "proto/row_ledger.pb.h"

namespace muster {

// The places where the passes of a stream begin, as far as a reader may have to
// know them. A value. Not thread-safe.
class StreamPasses {
 public:
  using Pass = std::pair<const int64_t, int64_t>;

  // Notes where a pass begins, if that is news and fits the others. Returns
  // whether the pass was not known.
  bool Add(const StreamPass& pass);
  // Forgets those that begin before the newest one that begins no later than
  // `place`.
  void ForgetBefore(int64_t place);
  // The newest that begins no later than `place`; pass 0 if none does.
  StreamPass Before(int64_t place) const;
  void AddTo(RowLedger& ledger) const;
  size_t size() const { return first_places_.size(); }

 private:
  std::map<int64_t, int64_t> first_places_;  // by pass
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STREAM_PASSES_H_
