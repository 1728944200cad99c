#include "common/config/attributes.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

AttrDef MakeDef(absl::string_view name, AttrType type, absl::string_view help) {
  AttrDef def;
  def.name = std::string(name);
  def.type = type;
  def.help = std::string(help);
  return def;
}

// Shortest of "1048576" and "1e+12"; StrCat alone keeps six digits.
std::string NumberText(double value) {
  const bool is_short_integer =
      std::fabs(value) < 1e9 && value == std::floor(value);
  return is_short_integer ? absl::StrCat(static_cast<int64_t>(value))
                          : absl::StrCat(value);
}

// "> 0 and <= 1", "one of same, valid"; "" if anything goes.
std::string Limits(const AttrDef& def) {
  std::vector<std::string> limits;
  if (std::isfinite(def.min)) {
    limits.push_back(
        absl::StrCat(def.min_is_open ? "> " : ">= ", NumberText(def.min)));
  }
  if (std::isfinite(def.max)) {
    limits.push_back(
        absl::StrCat(def.max_is_open ? "< " : "<= ", NumberText(def.max)));
  }
  if (!def.allowed.empty()) {
    limits.push_back(absl::StrCat("one of ", absl::StrJoin(def.allowed, ", ")));
  }
  return absl::StrJoin(limits, " and ");
}

std::string ValueText(const AttrValue& value) {
  struct Printer {
    std::string operator()(int64_t v) const { return absl::StrCat(v); }
    std::string operator()(double v) const { return absl::StrCat(v); }
    std::string operator()(const std::string& v) const {
      return absl::StrCat("'", v, "'");
    }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::vector<int64_t>& v) const {
      return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
    }
  };
  return std::visit(Printer(), value);
}

// An int where the table wants a float or a list is one.
AttrValue Widened(AttrType type, AttrValue value) {
  if (const int64_t* v = std::get_if<int64_t>(&value)) {
    if (type == AttrType::kFloat) return static_cast<double>(*v);
    if (type == AttrType::kInts) return std::vector<int64_t>{*v};
  }
  return value;
}

absl::StatusOr<AttrValue> ValueOf(const Attr& attr) {
  switch (attr.value_case()) {
    case Attr::kI:
      return attr.i();
    case Attr::kF:
      return attr.f();
    case Attr::kS:
      return attr.s();
    case Attr::kB:
      return attr.b();
    case Attr::kList:
      return std::vector<int64_t>(attr.list().v().begin(),
                                  attr.list().v().end());
    case Attr::kParameter:
      return absl::InvalidArgumentError(absl::StrCat(
          "attribute '", attr.name(), "' has the value of the parameter '",
          attr.parameter(), "', but only a block has parameters"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", attr.name(), "' has no value"));
  }
}

bool NumberAllowed(const AttrDef& def, double value) {
  return std::isfinite(value) &&
         (def.min_is_open ? value > def.min : value >= def.min) &&
         (def.max_is_open ? value < def.max : value <= def.max);
}

bool Allowed(const AttrDef& def, const AttrValue& value) {
  switch (def.type) {
    case AttrType::kInt:
      return NumberAllowed(def, static_cast<double>(std::get<int64_t>(value)));
    case AttrType::kFloat:
      return NumberAllowed(def, std::get<double>(value));
    case AttrType::kString:
      return def.allowed.empty() ||
             std::count(def.allowed.begin(), def.allowed.end(),
                        std::get<std::string>(value)) > 0;
    case AttrType::kBool:
      return true;
    case AttrType::kInts: {
      const auto& list = std::get<std::vector<int64_t>>(value);
      return std::all_of(list.begin(), list.end(), [&def](int64_t v) {
        return NumberAllowed(def, static_cast<double>(v));
      });
    }
  }
  return false;
}

absl::StatusOr<AttrValue> CheckedValue(const AttrDef& def, const Attr& attr) {
  ASSIGN_OR_RETURN(AttrValue given, ValueOf(attr));
  const AttrValue value = Widened(def.type, std::move(given));
  if (value.index() != static_cast<size_t>(def.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute '", def.name, "' must be of type ", AttrTypeName(def.type),
        ", found ", AttrTypeName(static_cast<AttrType>(value.index())), " ",
        ValueText(value)));
  }
  if (!Allowed(def, value)) {
    const std::string limits = Limits(def);
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute '", def.name, "' must be ",
        limits.empty() ? "finite" : limits, ", found ", ValueText(value)));
  }
  return value;
}

absl::StatusOr<std::vector<int64_t>> ParseInts(absl::string_view text) {
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  std::vector<int64_t> values;
  for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(item, &value)) {
      return absl::InvalidArgumentError("not an int");
    }
    values.push_back(value);
  }
  return values;
}

// Sets the oneof of `attr`; false if the text is not of the type.
bool SetFromText(AttrType type, absl::string_view text, Attr* attr) {
  int64_t i = 0;
  double f = 0;
  bool b = false;
  switch (type) {
    case AttrType::kInt:
      if (!absl::SimpleAtoi(text, &i)) return false;
      attr->set_i(i);
      return true;
    case AttrType::kFloat:
      if (!absl::SimpleAtod(text, &f)) return false;
      attr->set_f(f);
      return true;
    case AttrType::kString:
      attr->set_s(std::string(text));
      return true;
    case AttrType::kBool:
      if (!absl::SimpleAtob(text, &b)) return false;
      attr->set_b(b);
      return true;
    case AttrType::kInts: {
      const absl::StatusOr<std::vector<int64_t>> values = ParseInts(text);
      if (!values.ok()) return false;
      attr->mutable_list()->mutable_v()->Assign(values->begin(), values->end());
      return true;
    }
  }
  return false;
}

}  // namespace

absl::string_view AttrTypeName(AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return "int";
    case AttrType::kFloat:
      return "float";
    case AttrType::kString:
      return "string";
    case AttrType::kBool:
      return "bool";
    case AttrType::kInts:
      return "list of ints";
  }
  return "unknown";
}

AttrDef AttrDef::Default(AttrValue value) const {
  AttrDef def = *this;
  def.default_value = Widened(type, std::move(value));
  assert(def.default_value->index() == static_cast<size_t>(type));
  return def;
}

AttrDef AttrDef::AtLeast(double limit) const {
  AttrDef def = *this;
  def.min = limit;
  def.min_is_open = false;
  return def;
}

AttrDef AttrDef::AtMost(double limit) const {
  AttrDef def = *this;
  def.max = limit;
  def.max_is_open = false;
  return def;
}

AttrDef AttrDef::MoreThan(double limit) const {
  AttrDef def = *this;
  def.min = limit;
  def.min_is_open = true;
  return def;
}

AttrDef AttrDef::LessThan(double limit) const {
  AttrDef def = *this;
  def.max = limit;
  def.max_is_open = true;
  return def;
}

AttrDef AttrDef::OneOf(std::vector<std::string> names) const {
  AttrDef def = *this;
  def.allowed = std::move(names);
  return def;
}

AttrDef IntAttr(absl::string_view name, absl::string_view help) {
  return MakeDef(name, AttrType::kInt, help);
}

AttrDef FloatAttr(absl::string_view name, absl::string_view help) {
  return MakeDef(name, AttrType::kFloat, help);
}

AttrDef StringAttr(absl::string_view name, absl::string_view help) {
  return MakeDef(name, AttrType::kString, help);
}

AttrDef BoolAttr(absl::string_view name, absl::string_view help) {
  return MakeDef(name, AttrType::kBool, help);
}

AttrDef IntsAttr(absl::string_view name, absl::string_view help) {
  return MakeDef(name, AttrType::kInts, help);
}

absl::StatusOr<Attributes> Attributes::Create(
    absl::Span<const AttrDef> table,
    const google::protobuf::RepeatedPtrField<Attr>& attrs) {
  Attributes result;
  for (const Attr& attr : attrs) {
    ASSIGN_OR_RETURN(const AttrDef def, FindAttr(table, attr.name()));
    ASSIGN_OR_RETURN(AttrValue value, CheckedValue(def, attr));
    if (!result.values_.emplace(def.name, std::move(value)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", def.name, "' is given twice"));
    }
  }
  for (const AttrDef& def : table) {
    if (result.values_.count(def.name) > 0) continue;
    if (!def.default_value.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", def.name, "' (", AttrTypeName(def.type),
                       ": ", def.help, ") is required and missing"));
    }
    result.values_.emplace(def.name, *def.default_value);
  }
  return result;
}

const AttrValue& Attributes::Value(absl::string_view name) const {
  const auto it = values_.find(name);
  assert(it != values_.end());
  return it->second;
}

int64_t Attributes::Int(absl::string_view name) const {
  return std::get<int64_t>(Value(name));
}

double Attributes::Float(absl::string_view name) const {
  return std::get<double>(Value(name));
}

const std::string& Attributes::String(absl::string_view name) const {
  return std::get<std::string>(Value(name));
}

bool Attributes::Bool(absl::string_view name) const {
  return std::get<bool>(Value(name));
}

absl::Span<const int64_t> Attributes::Ints(absl::string_view name) const {
  return std::get<std::vector<int64_t>>(Value(name));
}

absl::StatusOr<Attr> ParseAttr(const AttrDef& def, absl::string_view text) {
  Attr attr;
  attr.set_name(def.name);
  if (!SetFromText(def.type, text, &attr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", def.name, "' must be of type ",
                     AttrTypeName(def.type), ", found '", text, "'"));
  }
  return attr;
}

absl::StatusOr<AttrDef> FindAttr(absl::Span<const AttrDef> table,
                                 absl::string_view name) {
  std::vector<std::string> known;
  for (const AttrDef& def : table) {
    if (def.name == name) return def;
    known.push_back(def.name);
  }
  return absl::InvalidArgumentError(
      UnknownNameMessage("attribute", name, known));
}

std::string DescribeAttributes(absl::Span<const AttrDef> table) {
  std::string text;
  for (const AttrDef& def : table) {
    const std::string limits = Limits(def);
    absl::StrAppend(
        &text, def.name, ": ", AttrTypeName(def.type), ", ",
        def.default_value.has_value()
            ? absl::StrCat("default ", ValueText(*def.default_value))
            : "required",
        limits.empty() ? "" : ", ", limits, ": ", def.help, "\n");
  }
  return text;
}

}  // namespace muster
