#include "ps_server/coordinator/agreed_data.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ps_server/coordinator/text_difference.h"

namespace muster {
namespace {

constexpr absl::string_view kFiles = "files";
constexpr absl::string_view kWorkers = "workers";
// The sections that say what a model's inputs and outputs mean.
constexpr absl::string_view kOfModel[] = {"columns", "classes", "map", "label"};

size_t BytesOf(const RegisterRequest& request) {
  size_t bytes = 0;
  for (const DataSection& section : request.data()) {
    bytes += section.ByteSizeLong();
  }
  return bytes;
}

// Whether it says what the data are.
bool DescribesData(const RegisterRequest& request) {
  return absl::c_any_of(request.data(), [](const DataSection& section) {
    return section.name() != kWorkers;
  });
}

// The advice for the operator.
absl::string_view RemedyFor(absl::string_view section) {
  if (section == kWorkers) {
    return "the rows are divided by that number: start all tasks with one "
           "cluster";
  }
  return "give every worker the same data (and where a run goes on, its "
         "--train_dir), or start all workers anew if the data have changed";
}

}  // namespace

absl::Status AgreedData::Check(const RegisterRequest& request, bool is_chief,
                               const Members& members) const {
  const size_t bytes = BytesOf(request);
  if (request.data_size() > kMaxSections || bytes > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "register ", TaskName(request.sender()), ": wanted at most ",
        kMaxSections, " sections of data in ", kMaxBytes, " bytes, found ",
        request.data_size(), " in ", bytes));
  }
  return Refuse(FindDifferent(request), request, is_chief, members);
}

absl::Status AgreedData::CheckWorkers(const RegisterRequest& request,
                                      bool is_chief,
                                      const Members& members) const {
  return Refuse(FindDifferent(request, kWorkers), request, is_chief, members);
}

absl::Status AgreedData::Refuse(const DataSection* different,
                                const RegisterRequest& request, bool is_chief,
                                const Members& members) const {
  const bool may_replace =
      is_chief ||
      (!are_chiefs_ && !members.IsAnotherThere(KeyOf(request.sender())));
  if (may_replace || different == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "register ", TaskName(request.sender()),
      ": its data differ from those of ",
      TaskName(Find(different->name())->owner), ": ", DifferenceIn(*different),
      "; ", RemedyFor(different->name())));
}

absl::Status AgreedData::CheckModel(const RegisterRequest& request,
                                    bool is_chief) const {
  if (!is_chief) return absl::OkStatus();
  for (const DataSection& known : of_model_) {
    for (const DataSection& given : request.data()) {
      if (given.name() != known.name() || given.digest() == known.digest()) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "register ", TaskName(request.sender()),
          ": the ps tasks hold a model that was trained with other data: ",
          SectionDifference(known, given, "that training"),
          "; give the chief the --train_dir of that run, or begin in another "
          "--namespace, or with ps tasks that are started anew"));
    }
  }
  return absl::OkStatus();
}

bool AgreedData::Adopt(const RegisterRequest& request, bool is_chief) {
  const TaskKey key = KeyOf(request.sender());
  const bool describes = DescribesData(request);
  const bool is_first = describes && FindDescriber() == nullptr;
  const bool is_new = FindDifferent(request) != nullptr;
  if (is_new) sections_.clear();
  if (!is_first && !is_new) WarnOfFiles(request);
  Add(request, is_chief);
  if (!describes) {
    NoteUncompared(key);
  } else if (is_first) {
    for (const TaskKey& other : uncompared_) SayUncompared(other);
  }
  return is_new;
}

void AgreedData::Add(const RegisterRequest& request, bool is_chief) {
  for (const DataSection& given : request.data()) {
    const auto known =
        absl::c_find_if(sections_, [&given](const Known& section) {
          return section.section.name() == given.name();
        });
    if (known == sections_.end() && sections_.size() < kMaxSections) {
      sections_.push_back({given, KeyOf(request.sender())});
    } else if (known != sections_.end() && is_chief) {
      *known = {given, KeyOf(request.sender())};
    }
  }
  if (!request.data().empty()) are_chiefs_ = are_chiefs_ || is_chief;
}

void AgreedData::KeepForModel() {
  of_model_.clear();
  for (const Known& known : sections_) {
    if (absl::c_linear_search(kOfModel, known.section.name())) {
      of_model_.push_back(known.section);
    }
  }
}

void AgreedData::Clear() {
  sections_.clear();
  are_chiefs_ = false;
  uncompared_.clear();
  warned_.clear();
}

std::vector<std::string> AgreedData::TakeLines() {
  return std::exchange(lines_, {});
}

std::vector<std::string> AgreedData::TakeWarnings() {
  return std::exchange(warnings_, {});
}

const AgreedData::Known* AgreedData::Find(absl::string_view name) const {
  const auto it = absl::c_find_if(sections_, [name](const Known& known) {
    return known.section.name() == name;
  });
  return it == sections_.end() ? nullptr : &*it;
}

const TaskKey* AgreedData::FindDescriber() const {
  const auto it = absl::c_find_if(sections_, [](const Known& known) {
    return known.section.name() != kWorkers;
  });
  return it == sections_.end() ? nullptr : &it->owner;
}

const DataSection* AgreedData::FindDifferent(
    const RegisterRequest& request) const {
  for (const DataSection& given : request.data()) {
    if (given.name() == kFiles) continue;
    if (Differs(given)) return &given;
  }
  return nullptr;
}

const DataSection* AgreedData::FindDifferent(const RegisterRequest& request,
                                             absl::string_view name) const {
  for (const DataSection& given : request.data()) {
    if (given.name() == name && Differs(given)) return &given;
  }
  return nullptr;
}

bool AgreedData::Differs(const DataSection& given) const {
  const Known* const known = Find(given.name());
  return known != nullptr && known->section.digest() != given.digest();
}

std::string AgreedData::DifferenceIn(const DataSection& given) const {
  const Known& known = *Find(given.name());
  return SectionDifference(known.section, given, TaskName(known.owner));
}

void AgreedData::WarnOfFiles(const RegisterRequest& request) {
  const DataSection* const files = FindDifferent(request, kFiles);
  if (files == nullptr || !warned_.insert(KeyOf(request.sender())).second) {
    return;
  }
  warnings_.push_back(absl::StrCat(
      TaskName(request.sender()), " reads other files than ",
      TaskName(Find(kFiles)->owner),
      ", which hold as many rows of the same kind: ", DifferenceIn(*files)));
}

void AgreedData::NoteUncompared(const TaskKey& key) {
  if (uncompared_.insert(key).second && FindDescriber() != nullptr) {
    SayUncompared(key);
  }
}

void AgreedData::SayUncompared(const TaskKey& key) {
  lines_.push_back(absl::StrCat(TaskName(key),
                                " does not say what its data are: they are "
                                "not compared with those of ",
                                TaskName(*FindDescriber())));
}

}  // namespace muster
