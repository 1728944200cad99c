#ifndef WORKER_HOOK_HOOK_REGISTRY_H_
#define WORKER_HOOK_HOOK_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/registry.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/hook/hook.h"

namespace muster {

// The parts that a registered hook is made of.
struct HookParts {
  // Checked.
  TrainingSpec training;
  // For messages: "/job:worker/task:0".
  std::string task_name;
  bool chief = false;
  // A line for the operator, from any thread.
  Reporter reporter;
  // Of effect on the chief only.
  RequestStop stop_job;
};

// Makes the hook of this process; null if the training has no part for it.
using MakeHook =
    absl::StatusOr<std::unique_ptr<Hook>> (*)(const HookParts& parts);

struct HookTag {
  static constexpr char kKind[] = "hook";
};

// Hooks by the names of their source files, which are listed in hooks.bzl:
//
//   // In an anonymous namespace of say_loss.cc:
//   [[maybe_unused]] const bool kRegistered = HookRegistry::Register(
//       "say_loss",
//       [](const HookParts& parts) -> absl::StatusOr<std::unique_ptr<Hook>> {
//         return std::make_unique<SayLoss>(parts.reporter);
//       });
using HookRegistry = Registry<HookTag, MakeHook>;

// All that take part, sorted by name. Errors: those of their making.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeRegisteredHooks(
    const HookParts& parts);

}  // namespace muster

#endif  // WORKER_HOOK_HOOK_REGISTRY_H_
