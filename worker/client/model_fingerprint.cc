#include "worker/client/model_fingerprint.h"

#include <string>

#include "absl/strings/string_view.h"

namespace muster {
namespace {

// FNV-1a, 64 bits: Fowler, Noll, Vo; the same in every build, unlike a
// library's hash.
class Fnv {
 public:
  void Add(absl::string_view bytes) {
    for (const char c : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
  }
  void AddMessage(const std::string& serialized) {
    // The length first: two messages are not one long one.
    Add(std::to_string(serialized.size()));
    Add(":");
    Add(serialized);
  }
  uint64_t hash() const { return hash_ == 0 ? 1 : hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

uint64_t ModelFingerprint(absl::Span<const TensorDef> tensors,
                          const OptimizerSpec& optimizer,
                          absl::Span<const TableDef> tables) {
  Fnv fnv;
  // None of these messages has a map, so that its serialized form is one.
  for (const TensorDef& tensor : tensors) {
    fnv.AddMessage(tensor.SerializeAsString());
  }
  fnv.AddMessage(optimizer.SerializeAsString());
  for (const TableDef& table : tables) {
    fnv.AddMessage(table.SerializeAsString());
  }
  return fnv.hash();
}

}  // namespace muster
