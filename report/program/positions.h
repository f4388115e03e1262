// From the positions that CPython gives, of instructions and code objects, to nodes, and from nodes to what is around.
#pragma once

#include <string_view>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

// The expression that an instruction belongs to: the innermost node of exactly that range, or else the smallest one
// that covers it. Where the columns are unknown, the statement at the line. None past the end of the file.
//
// CPython 3.10 has no columns; later ones begin the range of a method's call at the name of the method where the call
// spreads over several lines. Then the node is the whole call.
Node node_at(const SourceFile& file, const Range& range);
// The innermost statement that covers the line; if several begin there, the first.
Node statement_at(const SourceFile& file, int line);

// The simple or compound statement that the node is part of, the node itself included. For an expression in the header
// of an `if`, that is the `if`. Decorators belong to the definition below them.
Node statement_of(Node node);
bool is_statement(Node node);
// The function, lambda or comprehension whose code the node is, or the module. Of a definition's name, decorators and
// defaults: the one around it.
Node function_of(Node node);
// The class whose body or methods the node is in; also for the functions inside those. None outside of classes.
Node class_of(Node node);
// The class that the function is a method of; none for other functions.
Node class_of_method(Node function);

// The function, lambda, comprehension, class or module of a code object, by its co_firstlineno, which is that of the
// first decorator, and by co_qualname or co_name. None where nothing at that line has that name.
Node function_at(const SourceFile& file, int first_line, std::string_view qualified_name);
Node class_at(const SourceFile& file, int first_line, std::string_view qualified_name);
// By "Model.forward" or "helper" alone; several where a name is defined more than once.
std::vector<Node> functions_named(const SourceFile& file, std::string_view qualified_name);
// As CPython counts it.
int first_line(Node function_or_class);

}  // namespace devsan::program
