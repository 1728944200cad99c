#include "worker/ctl/verb.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/config/local_path.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

constexpr char kProgram[] = "musterctl";
// A verb has at most so many words.
constexpr size_t kMostWords = 2;

bool IsHelp(absl::string_view argument) {
  return argument == "--help" || argument == "-help" || argument == "-h";
}

std::string Usage(const std::string& name, const Verb& verb) {
  return absl::StrCat(kProgram, " ", name, verb.arguments.empty() ? "" : " ",
                      verb.arguments, verb.flags.empty() ? "" : " [FLAGS]");
}

std::string HelpOf(const std::string& name, const Verb& verb) {
  std::string text = absl::StrCat(Usage(name, verb), "\n  ", verb.help, "\n");
  if (!verb.flags.empty()) text += "\nFlags:\n";
  for (const Verb::Flag& flag : verb.flags) {
    absl::StrAppend(&text, flag.name.size() == 1 ? "  -" : "  --", flag.name,
                    flag.is_switch ? "" : "=VALUE", "\n      ", flag.help,
                    "\n");
  }
  return text;
}

// All verbs whose names begin with `words`.
std::vector<std::string> NamesBelow(absl::string_view words) {
  std::vector<std::string> names = VerbRegistry::Names();
  if (words.empty()) return names;
  const std::string prefix = absl::StrCat(words, " ");
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&prefix](const std::string& name) {
                               return !absl::StartsWith(name, prefix);
                             }),
              names.end());
  return names;
}

std::string HelpOfAll(const std::vector<std::string>& names) {
  std::string text = "Looks at clusters, trainings and their checkpoints.\n\n";
  for (const std::string& name : names) {
    const auto verb = VerbRegistry::Find(name);
    if (!verb.ok()) continue;  // Names come from the registry itself.
    const std::pair<std::string, std::string> lines =
        absl::StrSplit(verb->help, absl::MaxSplits('\n', 1));
    absl::StrAppend(&text, "  ", Usage(name, *verb), "\n      ", lines.first,
                    "\n");
  }
  absl::StrAppend(&text, "\n", kProgram, " VERB --help says more of a verb.\n");
  return text;
}

// A verb's name at the beginning of `args`, and what follows it.
struct NamedVerb {
  std::string name;
  Verb verb;
  absl::Span<const std::string> rest;
};

std::optional<NamedVerb> FindVerb(absl::Span<const std::string> args) {
  for (size_t words = std::min(kMostWords, args.size()); words > 0; --words) {
    std::string name = absl::StrJoin(args.first(words), " ");
    auto verb = VerbRegistry::Find(name);
    if (!verb.ok()) continue;
    return NamedVerb{std::move(name), *std::move(verb), args.subspan(words)};
  }
  return std::nullopt;
}

absl::Status UnknownVerb(absl::Span<const std::string> args) {
  const auto is_flag = [](const std::string& arg) { return arg[0] == '-'; };
  const size_t words =
      std::find_if(args.begin(), args.end(), is_flag) - args.begin();
  if (words == 0) return absl::InvalidArgumentError("wanted a verb first");
  const auto named = args.first(std::min(words, kMostWords));
  return absl::InvalidArgumentError(UnknownNameMessage(
      VerbTag::kKind, EscapeForLog(absl::StrJoin(named, " ")),
      VerbRegistry::Names()));
}

absl::Status UnknownFlag(const Verb& verb, absl::string_view name) {
  std::vector<std::string> known = {"help"};
  for (const Verb::Flag& flag : verb.flags) known.push_back(flag.name);
  const std::string nearest = NearestName(name, known);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag --", EscapeForLog(name), "; ",
      nearest.empty() ? "there are --" + absl::StrJoin(known, ", --")
                      : absl::StrCat("did you mean --", nearest, "?")));
}

absl::Status CheckSwitch(const Verb::Flag& flag, const std::string& value) {
  if (!flag.is_switch || value == "true" || value == "false") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag.name, " must be true or false, found '",
                   EscapeForLog(value), "'"));
}

// Reads `args` as the verb's arguments and flags.
absl::Status ReadCall(const Verb& verb, absl::Span<const std::string> args,
                      VerbCall* call) {
  for (size_t i = 0; i < args.size(); ++i) {
    absl::string_view text = args[i];
    if (!absl::ConsumePrefix(&text, "-")) {
      call->arguments.push_back(args[i]);
      continue;
    }
    absl::ConsumePrefix(&text, "-");
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    const std::string& name = halves.first;
    const auto flag = std::find_if(
        verb.flags.begin(), verb.flags.end(),
        [&name](const Verb::Flag& each) { return each.name == name; });
    if (flag == verb.flags.end()) return UnknownFlag(verb, name);
    if (absl::StrContains(text, '=')) {
      RETURN_IF_ERROR(CheckSwitch(*flag, halves.second));
      call->flags[name].push_back(halves.second);
    } else if (flag->is_switch) {
      call->flags[name].push_back("true");
    } else if (i + 1 < args.size()) {
      call->flags[name].push_back(args[++i]);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " needs a value, as in --", name, "=VALUE"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const Verb& verb, const VerbCall& call) {
  const size_t found = call.arguments.size();
  if (found >= verb.fewest_arguments && found <= verb.most_arguments) {
    return absl::OkStatus();
  }
  if (found > verb.most_arguments) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unexpected argument '",
        EscapeForLog(call.arguments[verb.most_arguments]), "'; wanted ",
        verb.arguments.empty() ? "flags alone" : verb.arguments));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted ", verb.arguments, ", found ", found, " argument(s)"));
}

absl::Status CheckPaths(const Verb& verb, const VerbCall& call) {
  for (const char* flag :
       {"training", "cluster", "certs_dir", "gpu_library_path"}) {
    for (const std::string& path : call.Repeated(flag)) {
      RETURN_IF_ERROR(CheckLocalPath(absl::StrCat("--", flag), path));
    }
  }
  if (!absl::StartsWith(verb.arguments, "PATH")) return absl::OkStatus();
  for (const std::string& path : call.arguments) {
    RETURN_IF_ERROR(CheckLocalPath("PATH", path));
  }
  return absl::OkStatus();
}

void Fail(absl::string_view who, const absl::Status& status,
          absl::string_view to_do, VerbResult* result) {
  absl::StrAppend(&result->error, who, ": ", status.message(), to_do, "\n");
  result->exit_code =
      absl::IsDataLoss(status) ? kExitBadCheckpoint : ExitCodeOf(status);
}

VerbResult RunNamed(const NamedVerb& named, FileSystem* file_system,
                    const ProgressOutput& output) {
  VerbResult result;
  const std::string who = absl::StrCat(kProgram, " ", named.name);
  VerbCall call;
  call.file_system = file_system;
  call.output = output;
  absl::Status status = ReadCall(named.verb, named.rest, &call);
  if (status.ok()) status = CheckArguments(named.verb, call);
  if (status.ok()) status = CheckPaths(named.verb, call);
  if (!status.ok()) {
    Fail(who, status, absl::StrCat("; ", who, " --help says more"), &result);
    return result;
  }
  status = named.verb.run(call, &result);
  if (!status.ok()) Fail(who, status, "", &result);
  return result;
}

}  // namespace

std::string VerbCall::Flag(const std::string& name) const {
  const auto found = flags.find(name);
  return found == flags.end() ? "" : found->second.back();
}

std::vector<std::string> VerbCall::Repeated(const std::string& name) const {
  const auto found = flags.find(name);
  return found == flags.end() ? std::vector<std::string>() : found->second;
}

VerbResult RunVerb(absl::Span<const std::string> args, FileSystem* file_system,
                   const ProgressOutput& output) {
  VerbResult result;
  const std::optional<NamedVerb> named = FindVerb(args);
  const bool asks_help = std::any_of(args.begin(), args.end(), IsHelp);
  if (named.has_value()) {
    if (!asks_help) return RunNamed(*named, file_system, output);
    result.out = HelpOf(named->name, named->verb);
    return result;
  }
  if (!args.empty() && args[0] == "--version") {
    result.out = absl::StrCat("muster ", kMusterVersion, " (protocol ",
                              kProtocolVersion, ")\n");
    return result;
  }
  std::vector<std::string> names =
      NamesBelow(args.empty() || IsHelp(args[0]) ? "" : args[0]);
  if (asks_help && !names.empty()) {
    result.out = HelpOfAll(names);
    return result;
  }
  Fail(kProgram, UnknownVerb(args),
       absl::StrCat("; ", kProgram, " --help lists the verbs"), &result);
  return result;
}

}  // namespace muster
