// One step through Python objects: what an object holds, by attribute, entry or key, read from the containers directly.
#pragma once

#include <cstddef>
#include <string_view>

#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

enum class LinkKind : unsigned char {
  attribute,  // .name
  index,      // [3]; .name of a NamedTuple
  key,        // ['name'], or [...] where the key is no str
  member,     // {...}, of a set
  parameter,  // .name, through nn.Module's _parameters
  buffer,     // .name, through nn.Module's _buffers
  child,      // .name, through nn.Module's _modules
  gradient,   // .grad
  closure,    // .<nonlocal name>, of a function that closes over it
  local,      // name
  global,     // name
};

struct Link {
  LinkKind kind;
  std::ptrdiff_t index = 0;
  const void* name = nullptr;  // a str, alive as long as the container
  const void* key = nullptr;   // of a dictionary, whatever it is; as long
  const char* text = nullptr;  // the name where there is no str: of a slot
  bool cell = false;           // a variable that inner functions share
};

// Of a container.
constexpr bool is_entry(LinkKind kind) noexcept {
  return kind == LinkKind::index || kind == LinkKind::key || kind == LinkKind::member;
}

// "Linear", "collections.OrderedDict": the name that the type itself carries.
std::string_view type_name(const void* object) noexcept;
// Whether an object has attributes of its own, or entries, that lead on to others.
bool leads_on(const void* object) noexcept;

class LinkVisitor {
 public:
  // False ends the visit.
  virtual bool link(const Link& link, void* object) = 0;

 protected:
  ~LinkVisitor() = default;
};

// Whether an object has an instance dictionary of its own, which may be asked for.
bool has_instance_dict(const void* object) noexcept;

// Visits what `object` holds: lists, tuples, dicts, sets, deques, functools.partial, functions with what they close
// over, and objects with slots or an instance dictionary.
void visit_links(void* object, LinkVisitor& visitor);

// The fast locals of a frame and, where `globals`, its module's globals.
void visit_frame(const void* frame, bool globals, LinkVisitor& visitor);

}  // namespace devsan::hooks
