#include "worker/training/table_defs.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/config/attributes.h"
#include "common/config/name_pattern.h"
#include "common/optimizer/update_rule.h"
#include "worker/training/check_range.h"
#include "worker/training/replication_settings.h"

namespace muster {
namespace {

constexpr char kPattern[] = "table.pattern";
constexpr int64_t kMaxDim = 65536;
constexpr float kDefaultScale = 0.05f;

std::string Named(absl::string_view table) {
  return absl::StrCat("table '", EscapeForLog(table), "'");
}

absl::Status CheckDim(const std::string& field, int64_t dim) {
  return CheckRange<int64_t>(field, dim, 1, kMaxDim,
                             absl::StrCat("from 1 to ", kMaxDim));
}

// A row that no step has stays as it is, so that nothing may pull at it.
absl::Status RefuseDecay(const OptimizerSpec& optimizer) {
  ASSIGN_OR_RETURN(const absl::Span<const AttrDef> known,
                   UpdateRuleAttributes(optimizer.name()));
  ASSIGN_OR_RETURN(const Attributes attributes,
                   Attributes::Create(known, optimizer.attr()));
  for (const AttrDef& attr : known) {
    if (attr.name != "weight_decay" && attr.name != "l2") continue;
    const double value = attributes.Float(attr.name);
    if (value == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "rule '", optimizer.name(), "' has ", attr.name, " ", value,
        ", which rows that no step has would miss: set it to 0, or give the "
        "table another rule, as in table { pattern: \".*\" optimizer { name: "
        "\"adagrad\" } }"));
  }
  return absl::OkStatus();
}

// One TableSpec, and the names that are its.
struct Setting {
  const TableSpec* spec;
  std::unique_ptr<NamePattern> pattern;
};

absl::StatusOr<std::vector<Setting>> MakeSettings(
    const TrainingSpec& training, const std::vector<std::string>& names) {
  std::vector<Setting> settings;
  for (const TableSpec& spec : training.table()) {
    ASSIGN_OR_RETURN(std::unique_ptr<NamePattern> pattern,
                     NamePattern::Create(kPattern, spec.pattern()));
    if (names.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kPattern, ": '", EscapeForLog(spec.pattern()),
                       "' matches nothing: the program has no tables"));
    }
    RETURN_IF_ERROR(pattern->CheckMatches(kPattern, names));
    settings.push_back({&spec, std::move(pattern)});
  }
  return settings;
}

absl::StatusOr<std::vector<std::string>> NamesOf(
    absl::Span<const ProgramTable> tables) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const ProgramTable& table : tables) {
    if (!seen.insert(table.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(Named(table.name()),
                       ": two tables have this name; each needs its own"));
    }
    names.push_back(table.name());
  }
  return names;
}

absl::StatusOr<TableDef> MakeTableDef(const TrainingSpec& training,
                                      const ProgramTable& table,
                                      const TableSpec& spec) {
  RETURN_IF_ERROR(CheckDim("dim", table.dim()));
  if (spec.dim() != 0 && spec.dim() != table.dim()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the program says dim ", table.dim(), ", the training's table.dim is ",
        spec.dim(), "; make them equal, or leave out the training's"));
  }
  TableDef def;
  def.set_name(table.name());
  def.set_dim(table.dim());
  *def.mutable_optimizer() =
      spec.has_optimizer() ? spec.optimizer() : training.optimizer();
  RETURN_IF_ERROR(
      Annotate(CreateUpdateRule(def.optimizer()).status(), "optimizer"));
  RETURN_IF_ERROR(RefuseDecay(def.optimizer()));
  def.set_initial(spec.initial());
  def.set_scale(spec.has_scale() ? spec.scale() : kDefaultScale);
  def.set_seed(static_cast<uint64_t>(training.seed()));
  RETURN_IF_ERROR(CheckNotNegative("table.max_rows", spec.max_rows()));
  def.set_max_rows(spec.max_rows());
  return def;
}

}  // namespace

absl::Status ValidateTables(const TrainingSpec& training) {
  for (const TableSpec& table : training.table()) {
    RETURN_IF_ERROR(NamePattern::Create(kPattern, table.pattern()).status());
    if (table.dim() != 0) RETURN_IF_ERROR(CheckDim("table.dim", table.dim()));
    RETURN_IF_ERROR(CheckFiniteNotNegative("table.scale", table.scale()));
    RETURN_IF_ERROR(CheckNotNegative("table.max_rows", table.max_rows()));
  }
  return absl::OkStatus();
}

absl::Status CheckSuitsTables(const TrainingSpec& training,
                              absl::Span<const ProgramTable> tables) {
  if (tables.empty()) return absl::OkStatus();
  const auto refuse = [&](absl::string_view field, absl::string_view advice) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": the program has ", Named(tables[0].name()),
                     ", and rows of tables ", advice));
  };
  if (training.replication().has_all_reduce()) {
    return refuse("replication.all_reduce",
                  "are on ps tasks: use async, sync or bounded_staleness");
  }
  if (PullsInPlace(training.replication())) {
    return refuse("replication.async.pull: IN_PLACE",
                  "are not read where they lie: leave it out");
  }
  if (training.gradient().error_feedback()) {
    return refuse("gradient.error_feedback", "have no residuals: leave it out");
  }
  if (!training.gradient().codec().empty()) {
    return refuse("gradient.codec", "are sent as float32: leave it out");
  }
  if (!training.pull().codec().empty()) {
    return refuse("pull.codec", "are sent as float32: leave it out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TableDef>> MakeTableDefs(
    const TrainingSpec& training, absl::Span<const ProgramTable> tables) {
  RETURN_IF_ERROR(CheckSuitsTables(training, tables));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(tables));
  ASSIGN_OR_RETURN(const std::vector<Setting> settings,
                   MakeSettings(training, names));
  std::vector<TableDef> defs;
  for (const ProgramTable& table : tables) {
    const auto setting =
        absl::c_find_if(settings, [&table](const Setting& each) {
          return each.pattern->MatchesWhole(table.name());
        });
    const TableSpec& spec = setting == settings.end()
                                ? TableSpec::default_instance()
                                : *setting->spec;
    absl::StatusOr<TableDef> def = MakeTableDef(training, table, spec);
    if (!def.ok()) return Annotate(def.status(), Named(table.name()));
    defs.push_back(*std::move(def));
  }
  return defs;
}

}  // namespace muster
