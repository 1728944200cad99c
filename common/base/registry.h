#ifndef COMMON_BASE_REGISTRY_H_
#define COMMON_BASE_REGISTRY_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/nearest_name.h"

namespace muster {

// Names to entries of one kind (layers, update rules, placement strategies,
// backends). An entry is registered by the source file that implements it:
//
//   // In an anonymous namespace of leaky_relu.cc:
//   [[maybe_unused]] const bool kRegistered =
//       LayerRegistry::Register("leaky_relu", {&LeakyRelu::Create, ...});
//
// The file's library needs `alwayslink` (see the .bzl list beside it), or the
// linker drops it. `Tag` names the kind in messages and tells registries of
// equal Entry types apart; it has `static constexpr char kKind[]`.
//
// Thread-safe. Registration happens before main.
template <typename Tag, typename Entry>
class Registry {
 public:
  // Adds an entry. A second entry of one name is not stored: Validate reports
  // it. Returns true, for the registrar's constant.
  static bool Register(absl::string_view name, Entry entry) {
    Registry& registry = Instance();
    absl::MutexLock lock(&registry.mu_);
    if (!registry.entries_.emplace(name, std::move(entry)).second) {
      registry.duplicates_.emplace_back(name);
    }
    return true;
  }

  // Returns the entry, or NotFound with the nearest and all known names.
  static absl::StatusOr<Entry> Find(absl::string_view name) {
    Registry& registry = Instance();
    absl::MutexLock lock(&registry.mu_);
    const auto it = registry.entries_.find(std::string(name));
    if (it != registry.entries_.end()) return it->second;
    return absl::NotFoundError(
        UnknownNameMessage(Tag::kKind, name, registry.NamesLocked()));
  }

  // All names, sorted.
  static std::vector<std::string> Names() {
    Registry& registry = Instance();
    absl::MutexLock lock(&registry.mu_);
    return registry.NamesLocked();
  }

  // AlreadyExists if two entries were registered under one name.
  static absl::Status Validate() {
    Registry& registry = Instance();
    absl::MutexLock lock(&registry.mu_);
    if (registry.duplicates_.empty()) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(
        "two ", Tag::kKind, "s are named '", registry.duplicates_[0], "'"));
  }

 private:
  Registry() = default;

  static Registry& Instance() {
    // Leaked on purpose: registrars of other files run in any order, and
    // threads may still look names up while the process ends.
    static Registry& registry = *new Registry();
    return registry;
  }

  std::vector<std::string> NamesLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

  absl::Mutex mu_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> duplicates_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // COMMON_BASE_REGISTRY_H_
