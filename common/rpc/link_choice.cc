#include "common/rpc/link_choice.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"

namespace muster {

absl::StatusOr<LinkChoice> ParseLinkChoice(absl::string_view text) {
  if (text == "auto") return LinkChoice::kAuto;
  if (text == "shared_memory") return LinkChoice::kSharedMemory;
  if (text == "tcp") return LinkChoice::kTcp;
  if (text == "grpc") return LinkChoice::kGrpc;
  return absl::InvalidArgumentError(
      absl::StrCat("--link=", EscapeForLog(text),
                   ": wanted auto, shared_memory, tcp or "
                   "grpc"));
}

}  // namespace muster
