// Follows one operand backwards through the code: a search by distance over expressions, each under an aspect.
//
// Distances say which way is likelier, in steps of about one: a binding costs one, a look at other callers more. What
// was seen nearer is not followed again, so that the search ends; kSteps and kFarthest bound it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/program/definitions.h"
#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report::slice {

// The part of a container that is asked for: the value of a key, or the element of a tuple. Neither: all of it.
struct Part {
  std::string key;
  int index = -1;
  bool operator==(const Part&) const = default;
  auto operator<=>(const Part&) const = default;
};

class Slicer {
 public:
  static constexpr std::size_t kSteps = 1000;
  static constexpr double kFarthest = 15;

  // `operand`: whose history tells which of several ways was taken. It outlives this.
  Slicer(const Code& code, const Operand& operand, Side side) : code_(code), operand_(operand), side_(side) {}

  // What the search begins with.
  void push(program::Node node, double distance, Aspect aspect, const Part& part = {});
  // `owner`: the class of the object, where it is known.
  void attribute_named(std::string_view name, double distance, Aspect aspect, program::Node owner = {});
  void object_of_method(program::Node function, double distance);
  void references_to(program::Node function, double distance, Aspect aspect);
  void conditions_of(program::Node node, double distance, Aspect aspect);
  void add(program::Node node, Role role, double distance, Aspect aspect, program::Node value = {});
  // May be called again after further pushes.
  void run();

  // Marks the places on the shortest way from the use to the step that decided the device, which is at `line`, and all
  // from which it can be reached at all. `decides`: whether an expression there is of the kind of that step.
  void mark_ways_to(const program::SourceFile& file, int line, const std::function<bool(program::Node)>& decides);
  std::vector<Place> take() { return std::move(places_); }

 private:
  using Key = std::tuple<program::Node, Aspect, Part>;
  using Expression = std::size_t;  // a key that was seen, by its number
  struct Step {
    Expression expression;
    program::Node node;
    Aspect aspect;
    Part part;
    double distance;
    std::size_t from;
  };
  struct Nearest {
    bool operator()(std::size_t left, std::size_t right) const;
    const std::vector<Step>* steps;
  };

  void visit(const Step& step);
  void mark_shortest(const std::vector<std::size_t>& ends, const std::function<double(std::size_t)>& length);
  void mark_all(const std::vector<std::size_t>& ends);
  // Whether something that is looked up by name is new, or nearer than before.
  bool is_nearer(std::string_view what, std::string_view name, program::Node scope, Aspect aspect, double distance);

  // Expressions.
  void children(program::Node node, double distance, Aspect aspect);
  void name(program::Node node, double distance, Aspect aspect);
  void attribute(program::Node node, double distance, Aspect aspect);
  void dictionary(program::Node node, double distance, Aspect aspect);
  void conditional(program::Node node, double distance, Aspect aspect);
  void call(program::Node node, double distance, Aspect aspect);

  // Names and what is bound to them.
  void leave_those_in_history(std::vector<program::Reached>& definitions) const;
  void bound_elsewhere(program::Node name, double distance, Aspect aspect);
  void reached(const program::Definition& definition, double distance, Aspect aspect);
  void defined(const program::Definition& definition, double distance, Aspect aspect);
  void imported(const program::Definition& definition, double distance, Aspect aspect);
  void done_with(program::Node use, double distance, Aspect aspect);
  void entered(const Definitions& entries, double distance, Aspect aspect);
  void filled(const Nodes& calls, double distance, Aspect aspect);
  void cache_key(const program::Definition& definition, double distance, Aspect aspect);
  void guards(program::Node statement, double distance, Aspect aspect);
  void guard_variables(program::Node condition, program::Node statement, double distance, Aspect aspect);

  // Attributes.
  void registered(std::string_view name, double distance, Aspect aspect, const Nodes* family);
  void fields(std::string_view name, double distance, Aspect aspect);
  void properties(std::string_view name, double distance, Aspect aspect, const Nodes* family);
  void siblings(std::string_view name, const Definitions& stores, double distance, Aspect aspect);
  void holders(std::string_view name, double distance);

  // Calls.
  bool call_of_move(const program::CallParts& parts, double distance, Aspect aspect);
  bool call_of_maker(const program::CallParts& parts, double distance, Aspect aspect);
  bool call_of_layer(const program::CallParts& parts, double distance);
  bool call_of_program(const program::CallParts& parts, double distance, Aspect aspect);
  Nodes methods_called(const program::CallParts& parts) const;
  void call_of_unknown(const program::CallParts& parts, double distance, Aspect aspect);
  void device_arguments(const program::CallParts& parts, double distance);
  void parameter(const program::Definition& definition, double distance, Aspect aspect);
  // Whether the call gives the parameter a value.
  bool given_by(const program::CallParts& call, const program::Definition& parameter, double distance, Aspect aspect);
  bool may_call(program::Node call, program::Node function, program::Node owner) const;
  std::vector<std::pair<program::Node, bool>> callers_of(program::Node function) const;
  void returns(program::Node function, double distance, Aspect aspect, Role role = Role::returned);
  void hooks(double distance, Aspect aspect);

  // Objects.
  void made_objects(program::Node class_definition, double distance, Aspect aspect);
  void object_at(program::Node call, double distance);
  void object_kept_as(program::Node target, double distance);

  // Whether a step of the history is in the statement.
  bool is_in_history(program::Node statement) const;

  const Code& code_;
  const Operand& operand_;
  Side side_;
  std::vector<Step> steps_;
  std::vector<std::size_t> heap_;
  struct Seen {
    Expression expression;
    double distance;
  };
  std::map<Key, Seen> seen_;
  std::vector<std::pair<Expression, Expression>> leads_;  // from the one to the other, however near either is
  std::map<std::tuple<std::string, std::string, program::Node, Aspect, Part>, double> looked_up_;
  std::size_t visited_ = 0;
  std::size_t current_ = kNoStep;
  Part part_;  // of the step that is visited
  std::vector<Place> places_;
  std::vector<std::size_t> place_steps_;  // by place: the step that found it

  static constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);
};

// A call that is a statement of its own, so that nothing takes its result.
bool is_dropped(program::Node call);
// Nothing that could be on a device: None, True, 3, [], dict().
bool is_empty_value(program::Node value);

}  // namespace devsan::report::slice
