#include "report/program/expressions.h"

#include <catch2/catch.hpp>

#include "parsed.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/program.h"

namespace devsan::program {
namespace {

// The expression of a file that is nothing else.
class Expression {
 public:
  explicit Expression(const std::string& code) : file_("a.py", code + "\n") {}
  Node node() const { return file_.root().only_child().only_child(); }

 private:
  SourceFile file_;
};

std::string texts(const std::vector<Node>& nodes) {
  std::vector<std::string> parts;
  for (const Node each : nodes) parts.emplace_back(each.text());
  return joined(parts);
}

TEST_CASE("A call has arguments by place and by name") {
  const Expression code("x.y(a, b.c, *d, e, k=1, **m)");
  const CallParts call = call_parts(code.node());
  REQUIRE(call);
  CHECK(call.callee.text() == "x.y");
  CHECK(call.receiver().text() == "x");
  CHECK(call.method() == "y");
  CHECK(texts(call.positional) == "a; b.c");
  CHECK(call.keyword("k").text() == "1");
  CHECK_FALSE(call.keyword("m"));
  CHECK(call.argument("other", 1).text() == "b.c");
  CHECK(call.argument("k", 1).text() == "1");
  CHECK_FALSE(call.argument("other", 3));
  CHECK(call.has_star);
  CHECK(call.has_double_star);
  CHECK(call.arguments.size() == 6);
  const Expression generator("sum(x for x in y)");
  CHECK(call_parts(generator.node()).positional.at(0).is(Kind::GeneratorExpression));
  CHECK_FALSE(call_parts(Expression("x.y").node()));
  CHECK(call_parts(Expression("f(# why\n)").node()).arguments.empty());
}

TEST_CASE("Operations have an operator and operands") {
  const auto taken_apart = [](const char* code) {
    const Expression expression(code);
    std::vector<std::string> parts;
    for (const OperationParts& each : operations(expression.node())) {
      parts.push_back(std::string(each.left.text()) + " <" + std::string(each.operation) + "> " +
                      std::string(each.right.text()));
    }
    return joined(parts);
  };
  CHECK(taken_apart("a + b * c") == "a <+> b * c");
  CHECK(taken_apart("a < b is not c") == "a <<> b; b <is not> c");
  CHECK(taken_apart("a not in b") == "a <not in> b");
  CHECK(taken_apart("a and b or c") == "a and b <or> c");
  CHECK(taken_apart("not a") == " <not> a");
  CHECK(taken_apart("-a") == " <-> a");
  CHECK(taken_apart("f(a)").empty());
  CHECK(texts(operands(Expression("a + b * (c - d)").node())) == "a; b * (c - d)");
  CHECK(texts(operands(Expression("a + b * (c - d)").node(), true)) == "a; b; c; d");
  CHECK(texts(operands(Expression("a < b < c").node())) == "a; b; c");
}

TEST_CASE("Conditionals, displays and comprehensions are taken apart") {
  const Expression conditional("a if b else c");
  CHECK(conditional_parts(conditional.node()).condition.text() == "b");
  CHECK(conditional_parts(conditional.node()).if_true.text() == "a");
  CHECK(conditional_parts(conditional.node()).if_false.text() == "c");
  CHECK_FALSE(conditional_parts(Expression("a").node()).condition);
  CHECK(texts(elements(Expression("[a, *b, c]").node())) == "a; *b; c");
  CHECK(texts(elements(Expression("(a, b)").node())) == "a; b");
  CHECK(texts(elements(Expression("x = a, b").node().child(Field::Right))) == "a; b");
  CHECK(texts(elements(Expression("{'k': a, **b}").node())) == "a; b");
  CHECK(entries(Expression("{'k': a, **b}").node()).at(0).key.text() == "'k'");
  CHECK_FALSE(entries(Expression("{'k': a, **b}").node()).at(1).key);
  const Expression comprehension("{k: v for k, v in x if v for y in z}");
  const ComprehensionParts parts = comprehension_parts(comprehension.node());
  CHECK(parts.key.text() == "k");
  CHECK(parts.element.text() == "v");
  CHECK(texts(parts.clauses) == "for k, v in x; if v; for y in z");
  CHECK(parts.clauses[0].child(Field::Right).text() == "x");
}

TEST_CASE("Literals have values") {
  const auto text = [](const char* code) { return string_value(Expression(code).node()).value_or("none"); };
  CHECK(text("'a' \"b\"") == "ab");
  CHECK(text("'''a\n\"b'''") == "a\n\"b");
  CHECK(text("'\\n\\x41\\u00e4\\101\\q\\\n'") ==
        "\nA\xc3\xa4"
        "A\\q");
  CHECK(text("r'\\n'") == "\\n");
  CHECK(text("('a')") == "a");
  CHECK(text("''").empty());
  CHECK(text("f'{{a}}'") == "{a}");
  CHECK(text("f'{a}'") == "none");
  CHECK(text("b'a'") == "none");
  CHECK(text("a") == "none");
  CHECK(is_interpolated_string(Expression("'a' f'b'").node()));
  CHECK(is_interpolated_string(Expression("rT'b'").node()));
  CHECK(is_bytes(Expression("Rb'b'").node()));
  CHECK(integer_value(Expression("1_000").node()) == 1000);
  CHECK(integer_value(Expression("-0x1F").node()) == -31);
  CHECK(integer_value(Expression("0b101").node()) == 5);
  CHECK(integer_value(Expression("0o17").node()) == 15);
  CHECK_FALSE(integer_value(Expression("99999999999999999999").node()));
  CHECK_FALSE(integer_value(Expression("1.0").node()));
  CHECK(number_value(Expression("-1_0.5e1").node()) == -105.0);
  CHECK_FALSE(number_value(Expression("3j").node()));
  CHECK(boolean_value(Expression("True").node()) == true);
  CHECK_FALSE(boolean_value(Expression("None").node()));
  CHECK(is_literal(Expression("...").node()));
  CHECK(is_literal(Expression("-3").node()));
  CHECK_FALSE(is_literal(Expression("f'a'").node()));
}

TEST_CASE("Names and their dots are told from other expressions") {
  CHECK(dotted_name(Expression("self.model.encoder").node()) == "self.model.encoder");
  CHECK(dotted_name(Expression("x").node()) == "x");
  CHECK(dotted_name(Expression("f().x").node()).empty());
  CHECK(dotted_name(Expression("x[0].y").node()).empty());
  CHECK(root_of(Expression("self.f(x)[0].y").node()).text() == "self");
  CHECK(root_of(Expression("(await x.y()).z").node()).text() == "x");
  CHECK_FALSE(root_of(Expression("'a'.join(b)").node()));
  CHECK(awaited(Expression("(await (x))").node()).text() == "x");
  CHECK(variable_of(Expression("a.b['k'][-1][c]").node())->text() == "a.b['k'][-1][]");
  CHECK_FALSE(variable_of(Expression("f(x)").node()));
}

TEST_CASE("Classes have bases, decorators and methods") {
  const SourceFile file("a.py",
                        "@a.b\n@c(1)\nclass A(B, C.D, metaclass=M):\n  @property\n  def f(self): pass\n"
                        "  def g(self): pass\n  def f(self, x): pass\n  if x:\n    def h(self): pass\n");
  const Node definition = class_at(file, 1, "A");
  CHECK(texts(bases_of(definition)) == "B; C.D");
  CHECK(texts(decorators_of(definition)) == "a.b; c(1)");
  CHECK(methods_of(definition).size() == 4);
  CHECK(method_of(definition, "f").text() == "def f(self, x): pass");
  CHECK_FALSE(method_of(definition, "k"));
}

TEST_CASE("Files of a program are found by path and by module") {
  Program program;
  const SourceFile& main = program.add("/a/main.py", "import pkg\n");
  const SourceFile& package = program.add("/a/pkg/__init__.py", "");
  const SourceFile& utils = program.add("/a/pkg/utils.py", "x = 1\n");
  const SourceFile& other = program.add("/b/pkg/utils.py", "");
  CHECK(&program.add("/a/pkg/utils.py", "y = 2\n") == &utils);
  CHECK(utils.text() == "x = 1\n");
  CHECK(program.files().size() == 4);
  CHECK(program.file("/a/main.py") == &main);
  CHECK(program.file("/a/none.py") == nullptr);
  CHECK(program.module("pkg", main) == &package);
  CHECK(program.module("pkg.utils", main) == &utils);
  CHECK(program.module("pkg.utils", other) == &other);
  CHECK(program.module(".utils", package) == &utils);
  CHECK(program.module("..main", utils) == &main);
  CHECK(program.module(".", utils) == &package);
  CHECK(program.module("kg.utils", main) == nullptr);
}

}  // namespace
}  // namespace devsan::program
