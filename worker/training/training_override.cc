#include "worker/training/training_override.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/config/attributes.h"
#include "common/config/text_format.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "worker/layer/layer.h"
#include "worker/model/expand_blocks.h"

namespace muster {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using Path = absl::Span<const std::string>;
using Attrs = google::protobuf::RepeatedPtrField<Attr>;

absl::Status BadValue(absl::string_view wanted, absl::string_view value) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the value must be ", wanted, ", found '", EscapeForLog(value), "'"));
}

absl::Status CannotDescend(absl::string_view name, absl::string_view into) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' has no part '", EscapeForLog(into), "'"));
}

absl::StatusOr<const FieldDescriptor*> FindField(const Message& message,
                                                 const std::string& name) {
  const auto* type = message.GetDescriptor();
  const FieldDescriptor* field = type->FindFieldByName(name);
  if (field != nullptr) return field;
  return absl::InvalidArgumentError(
      UnknownNameMessage(absl::StrCat(type->name(), " field"),
                         EscapeForLog(name), FieldNames(*type)));
}

absl::Status SetNumber(const FieldDescriptor* field, absl::string_view value,
                       Message* message) {
  const Reflection* reflection = message->GetReflection();
  int32_t i32 = 0;
  int64_t i64 = 0;
  double f = 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (!absl::SimpleAtoi(value, &i32)) break;
      reflection->SetInt32(message, field, i32);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT64:
      if (!absl::SimpleAtoi(value, &i64)) break;
      reflection->SetInt64(message, field, i64);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!absl::SimpleAtod(value, &f) || !std::isfinite(f)) {
        return BadValue("a number", value);
      }
      reflection->SetDouble(message, field, f);
      return absl::OkStatus();
    default:
      return absl::InternalError(
          absl::StrCat("fields like '", field->name(), "' cannot be set"));
  }
  return BadValue("a whole number", value);
}

// Adds one item to a list; false if it is no number of the list's type.
bool AddNumber(const FieldDescriptor* field, absl::string_view item,
               Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(item, &number)) return false;
    reflection->AddInt64(message, field, number);
    return true;
  }
  double number = 0;
  if (!absl::SimpleAtod(item, &number) || !std::isfinite(number)) return false;
  reflection->AddDouble(message, field, number);
  return true;
}

// The whole list, as text: one message in braces, or several with commas.
absl::Status SetMessages(const FieldDescriptor* field, absl::string_view value,
                         Message* message) {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  if (!absl::StartsWith(text, "{")) {
    return BadValue("text in braces, one or several with commas", value);
  }
  const std::unique_ptr<Message> read(message->New());
  RETURN_IF_ERROR(ParseTextProto(absl::StrCat(field->name(), ": [", text, "]"),
                                 "the value", read.get()));
  message->GetReflection()->SwapFields(message, read.get(), {field});
  return absl::OkStatus();
}

absl::Status SetList(const FieldDescriptor* field, absl::string_view value,
                     Message* message) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return SetMessages(field, value, message);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    // Names and patterns of them, in which no comma has a meaning.
    message->GetReflection()->ClearField(message, field);
    for (const absl::string_view item :
         absl::StrSplit(value, ',', absl::SkipEmpty())) {
      message->GetReflection()->AddString(message, field, std::string(item));
    }
    return absl::OkStatus();
  }
  const bool whole = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  if (!whole && field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the list '", field->name(), "' can only be set in the file"));
  }
  message->GetReflection()->ClearField(message, field);
  for (const absl::string_view item : absl::StrSplit(value, ',')) {
    if (AddNumber(field, item, message)) continue;
    return BadValue(whole ? "whole numbers separated by commas"
                          : "numbers separated by commas",
                    value);
  }
  return absl::OkStatus();
}

absl::Status SetEnum(const FieldDescriptor* field, const std::string& value,
                     Message* message) {
  const auto* type = field->enum_type();
  const auto* found = type->FindValueByName(value);
  if (found != nullptr) {
    message->GetReflection()->SetEnum(message, field, found);
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    names.push_back(type->value(i)->name());
  }
  return absl::InvalidArgumentError(
      UnknownNameMessage(field->name(), EscapeForLog(value), names));
}

absl::Status SetScalar(const FieldDescriptor* field, const std::string& value,
                       Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (field->is_repeated()) return SetList(field, value, message);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection->SetString(message, field, value);
    return absl::OkStatus();
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return SetEnum(field, value, message);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    bool b = false;
    if (!absl::SimpleAtob(value, &b)) return BadValue("true or false", value);
    reflection->SetBool(message, field, b);
    return absl::OkStatus();
  }
  return SetNumber(field, value, message);
}

// "async" makes the empty AsyncReplication of the oneof, and so on.
absl::Status SetOneof(const std::string& name, Message* message) {
  ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(*message, name));
  message->GetReflection()->MutableMessage(message, field);
  return absl::OkStatus();
}

// All of a message, as its text in braces.
absl::Status SetMessage(absl::string_view text, Message* message) {
  if (!absl::ConsumePrefix(&text, "{") || !absl::ConsumeSuffix(&text, "}")) {
    return BadValue("text in braces", text);
  }
  const std::unique_ptr<Message> read(message->New());
  RETURN_IF_ERROR(ParseTextProto(text, "the value", read.get()));
  message->CopyFrom(*read);
  return absl::OkStatus();
}

// A message that is chosen by a name: sets that name. Or its text in braces.
absl::Status SetChoice(const std::string& value, Message* message) {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  const std::vector<std::string> fields = FieldNames(*message->GetDescriptor());
  if (absl::StartsWith(text, "{")) return SetMessage(text, message);
  if (fields.empty()) return BadValue("{}", value);
  if (auto* optimizer = dynamic_cast<OptimizerSpec*>(message)) {
    if (optimizer->name() != value) optimizer->clear_attr();
    optimizer->set_name(value);
  } else if (auto* placement = dynamic_cast<PlacementSpec*>(message)) {
    placement->set_strategy(value);
  } else if (auto* input = dynamic_cast<InputSpec*>(message)) {
    input->set_type(value);
  } else if (auto* schedule = dynamic_cast<ScheduleSpec*>(message)) {
    schedule->set_name(value);
  } else if (dynamic_cast<ReplicationSpec*>(message) != nullptr ||
             dynamic_cast<PartitionSpec*>(message) != nullptr) {
    return SetOneof(value, message);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(message->GetDescriptor()->name(),
                     " needs a field, or its text in braces: ",
                     absl::StrJoin(fields, ", ")));
  }
  return absl::OkStatus();
}

// Replaces or adds one attribute.
absl::Status SetAttr(absl::Span<const AttrDef> table, Path path,
                     const std::string& value, Attrs* attrs) {
  ASSIGN_OR_RETURN(const AttrDef def, FindAttr(table, path[0]));
  if (path.size() > 1) return CannotDescend(path[0], path[1]);
  ASSIGN_OR_RETURN(Attr attr, ParseAttr(def, value));
  for (Attr& old : *attrs) {
    if (old.name() != def.name) continue;
    old = std::move(attr);
    return absl::OkStatus();
  }
  *attrs->Add() = std::move(attr);
  return absl::OkStatus();
}

// optimizer.adam.learning_rate, or optimizer.learning_rate.
absl::Status SetOptimizerAttr(Path path, const std::string& value,
                              OptimizerSpec* spec) {
  if (UpdateRuleAttributes(path[0]).ok()) {
    if (path[0] != spec->name()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the optimizer is '", spec->name(), "', not '", path[0],
                       "'; choose it first with --set optimizer=", path[0]));
    }
    path.remove_prefix(1);
    if (path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "names no attribute; choose an optimizer with --set optimizer=",
          spec->name()));
    }
  }
  ASSIGN_OR_RETURN(const absl::Span<const AttrDef> table,
                   UpdateRuleAttributes(spec->name()));
  const absl::Status status = SetAttr(table, path, value, spec->mutable_attr());
  return Annotate(status, absl::StrCat("optimizer '", spec->name(), "'"));
}

// The field of every layer, and use of a block, that `path` names; null if it
// is an attribute.
const FieldDescriptor* LayerField(Path path) {
  if (path.size() != 1 || (path[0] != "freeze" && path[0] != "device")) {
    return nullptr;
  }
  return LayerSpec::descriptor()->FindFieldByName(path[0]);
}

absl::Status SetPath(Path path, const std::string& value, Message* message);

absl::Status SetLayer(Path path, const std::string& value, LayerSpec* layer) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "names a layer but no attribute; wanted model.LAYER.ATTRIBUTE=VALUE");
  }
  if (path[0] == "type" && path.size() == 1) {
    layer->set_type(value);
    return absl::OkStatus();
  }
  if (const auto* field = LayerField(path)) {
    return SetScalar(field, value, layer);
  }
  if (path[0] == "split") {
    return SetPath(path.subspan(1), value, layer->mutable_split());
  }
  const auto type = LayerRegistry::Find(layer->type());
  if (!type.ok()) return type.status();
  return SetAttr(type->attributes, path, value, layer->mutable_attr());
}

// The type of a block's parameter: that of the value it has in the use, or else
// in the block.
absl::StatusOr<AttrDef> ParameterDefOf(const BlockSpec& block,
                                       const LayerSpec& use,
                                       const std::string& name) {
  const Attr* value = nullptr;
  std::vector<std::string> names;
  for (const Attr& parameter : block.parameter()) {
    names.push_back(parameter.name());
    if (parameter.name() == name) value = &parameter;
  }
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        UnknownNameMessage("parameter", EscapeForLog(name), names));
  }
  for (const Attr& attr : use.attr()) {
    if (attr.name() == name) value = &attr;
  }
  switch (value->value_case()) {
    case Attr::kI:
      return IntAttr(name, "");
    case Attr::kF:
      return FloatAttr(name, "");
    case Attr::kB:
      return BoolAttr(name, "");
    case Attr::kList:
      return IntsAttr(name, "");
    default:
      return StringAttr(name, "");
  }
}

// The layer, or the use of a block, of this name; null if there is none.
LayerSpec* FindLayer(const std::string& name, ModelSpec* model) {
  for (LayerSpec& layer : *model->mutable_layer()) {
    if (layer.name() == name) return &layer;
  }
  return nullptr;
}

absl::Status SetUse(const BlockSpec& block, Path path, const std::string& value,
                    LayerSpec* use) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "names the use of a block but no parameter; wanted "
        "model.LAYER.PARAMETER=VALUE");
  }
  if (const auto* field = LayerField(path)) {
    return SetScalar(field, value, use);
  }
  ASSIGN_OR_RETURN(const AttrDef def, ParameterDefOf(block, *use, path[0]));
  return SetAttr({def}, path, value, use->mutable_attr());
}

// model.conv1.filters; for the use of a block its parameters, and, by their
// names in the whole model, the layers that it stands for.
absl::Status SetModelPart(Path path, const std::string& value,
                          ModelSpec* model) {
  LayerSpec* layer = FindLayer(path[0], model);
  if (layer == nullptr) {
    RETURN_IF_ERROR(ExpandBlocks(model));
    layer = FindLayer(path[0], model);
  }
  if (layer == nullptr) {
    std::vector<std::string> names = FieldNames(*model->GetDescriptor());
    for (const LayerSpec& known : model->layer()) names.push_back(known.name());
    return absl::InvalidArgumentError(
        UnknownNameMessage("layer", EscapeForLog(path[0]), names));
  }
  absl::Status status;
  const auto block = std::find_if(model->block().begin(), model->block().end(),
                                  [layer](const BlockSpec& known) {
                                    return known.name() == layer->type();
                                  });
  if (block == model->block().end()) {
    status = SetLayer(path.subspan(1), value, layer);
  } else {
    status = SetUse(*block, path.subspan(1), value, layer);
  }
  return Annotate(status, absl::StrCat("layer '", layer->name(), "' (",
                                       layer->type(), ")"));
}

absl::Status SetPath(Path path, const std::string& value, Message* message) {
  if (path.empty()) return SetChoice(value, message);
  const FieldDescriptor* known =
      message->GetDescriptor()->FindFieldByName(path[0]);
  if (known == nullptr) {
    if (auto* optimizer = dynamic_cast<OptimizerSpec*>(message)) {
      return SetOptimizerAttr(path, value, optimizer);
    }
    if (auto* model = dynamic_cast<ModelSpec*>(message)) {
      return SetModelPart(path, value, model);
    }
  }
  ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(*message, path[0]));
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
      !field->is_repeated()) {
    return SetPath(path.subspan(1), value,
                   message->GetReflection()->MutableMessage(message, field));
  }
  if (path.size() > 1) return CannotDescend(path[0], path[1]);
  return SetScalar(field, value, message);
}

}  // namespace

absl::Status ApplyOverride(absl::string_view assignment, TrainingSpec* spec) {
  const std::string context = absl::StrCat("--set ", EscapeForLog(assignment));
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        context, ": wanted path=value, for example stop.steps=100"));
  }
  const std::vector<std::string> path =
      absl::StrSplit(assignment.substr(0, equals), '.');
  const std::string value(assignment.substr(equals + 1));
  // A refused override leaves no half of itself.
  TrainingSpec changed = *spec;
  RETURN_IF_ERROR(Annotate(SetPath(path, value, &changed), context));
  *spec = std::move(changed);
  return absl::OkStatus();
}

}  // namespace muster
