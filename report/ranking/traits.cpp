#include "report/ranking/traits.h"

#include <algorithm>

#include "report/program/expressions.h"
#include "report/program/source_file.h"
#include "report/slice/file_index.h"
#include "report/slice/torch_names.h"

namespace devsan::report::ranking {

using program::Field;
using program::Kind;
using program::Node;

namespace {

void add_call(Node call, Traits& traits) {
  const std::string_view name = slice::called_name(call);
  const bool method = call.child(Field::Function).is(Kind::Attribute);
  traits.moves |= method && (name == "to" || name == "cuda" || name == "to_empty" || name == "type_as");
  traits.to_host |= method && (name == "cpu" || name == "numpy");
  traits.names_accelerator |= method && name == "cuda";
  traits.copies |= name == "deepcopy" || name == "clone" || name == "copy";
  traits.converts |= name == "from_numpy" || name == "as_tensor" || name == "tensor" || name == "load";
  traits.makes |= slice::makes_tensor(name) && !slice::wraps_tensor(name);
  traits.makes_alike |= slice::makes_alike(name);
  traits.makes_layer |= slice::makes_layer(call.child(Field::Function));
  traits.keeps_dtype |= name == "type_as" || name == "type";
  traits.registers |= slice::registers_member(name) || slice::wraps_tensor(name);
  traits.tests |= name == "isinstance" || name == "hasattr" || name == "len" || name == "is_tensor";
}

void add(Node node, Traits& traits) {
  switch (node.kind()) {
    case Kind::Call:
      return add_call(node, traits);
    case Kind::KeywordArgument:
      traits.gives_device |= node.child(Field::Name).text() == "device";
      return;
    case Kind::Identifier:
      traits.speaks_of_device |= node.text().find("device") != std::string_view::npos || node.text() == "dev";
      traits.keeps_dtype |= node.text() == "dtype";
      return;
    case Kind::StringContent:
      traits.to_host |= node.text() == "cpu";
      traits.names_accelerator |= node.text().starts_with("cuda");
      return;
    case Kind::ComparisonOperator:
      traits.tests |=
          node.text().find(" is ") != std::string_view::npos || node.text().find(" in ") != std::string_view::npos;
      return;
    default:
      return;
  }
}

}  // namespace

Traits traits_of(Node node) {
  Traits traits;
  if (!node) return traits;
  const Node body = node.child(Field::Body);
  const Node consequence = node.child(Field::Consequence);
  const std::uint32_t end = body.is(Kind::Block)          ? body.index()
                            : consequence.is(Kind::Block) ? consequence.index()
                                                          : node.subtree_end();
  for (std::uint32_t index = node.index(); index < end; ++index) add(node.file().node(index), traits);
  return traits;
}

Traits traits_of_line(const program::SourceFile& file, int line) {
  Traits traits;
  const std::uint32_t begin = file.line_start(line);
  const std::uint32_t end = file.line_start(line + 1);
  std::uint32_t low = 0, high = static_cast<std::uint32_t>(file.size());
  while (low < high) {  // nodes are in the order of the text
    const std::uint32_t middle = low + (high - low) / 2;
    if (file.node(middle).begin_byte() < begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < file.size() && file.node(low).begin_byte() < end; ++low) add(file.node(low), traits);
  return traits;
}

}  // namespace devsan::report::ranking
