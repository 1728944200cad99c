#include "ps_server/caller/takeover_token.h"

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"

namespace muster {

uint64_t TakeoverToken(uint64_t current, uint64_t next, int64_t replaced) {
  const uint64_t number = Fingerprint64(
      absl::StrCat(absl::Hex(current), " ", absl::Hex(next), " ", replaced));
  return number == 0 ? 1 : number;
}

}  // namespace muster
