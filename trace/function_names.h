// Qualified names of Python's functions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace devsan::trace {

// "<listcomp>" and its kin, without the function around it.
constexpr bool is_comprehension(std::string_view own) {
  constexpr std::array<std::string_view, 4> kComprehensions = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"};
  return std::ranges::find(kComprehensions, own) != kComprehensions.end();
}

// "Graph.to" of "Graph.to.<locals>.<dictcomp>": before CPython 3.12 a comprehension is a function of its own, although
// nobody writes one. Names of other functions as they are.
constexpr std::string_view function_around(std::string_view function) {
  constexpr std::string_view kInside = ".<locals>.";
  for (;;) {
    const std::size_t inside = function.rfind(kInside);
    if (inside == function.npos) return function;
    if (!is_comprehension(function.substr(inside + kInside.size()))) return function;
    function = function.substr(0, inside);
  }
}

// "to" of "Graph.to": what it is called by.
constexpr std::string_view own_name(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

static_assert(own_name("Graph.to") == "to" && own_name("load") == "load");
static_assert(function_around("Graph.to.<locals>.<dictcomp>.<locals>.<genexpr>") == "Graph.to");
static_assert(function_around("Graph.to.<locals>.inner") == "Graph.to.<locals>.inner");
static_assert(function_around("<listcomp>") == "<listcomp>");

}  // namespace devsan::trace
