#include "hooks/inprocess/snapshot/object_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr std::ptrdiff_t kMaxEntries = 4096;  // of one container
constexpr std::ptrdiff_t kDictOffset = 288;   // PyTypeObject::tp_dictoffset
constexpr unsigned kManagedDictFlag = 4;      // Py_TPFLAGS_MANAGED_DICT, from 3.11 on

// `fields`: a tuple with the names of the entries; null where they have none.
bool visit_sequence(const char* items, std::ptrdiff_t count, const void* fields, LinkVisitor& visitor) {
  for (std::ptrdiff_t k = 0; k < count && k < kMaxEntries; ++k) {
    void* object = field<void*>(items, k * static_cast<std::ptrdiff_t>(sizeof(void*)));
    if (object != nullptr && !visitor.link({LinkKind::index, k, tuple_entry(fields, k)}, object)) return false;
  }
  return true;
}

bool visit_dict(void* dict, LinkKind kind, LinkVisitor& visitor) {
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  for (std::ptrdiff_t k = 0; k < kMaxEntries && python.PyDict_Next(dict, &at, &key, &value) != 0; ++k) {
    const Link link{kind, k, is_text(key) ? key : nullptr, key};
    if (value != nullptr && !visitor.link(link, value)) return false;
  }
  return true;
}

// A module's parameters, buffers and children lie in dictionaries of their own; they are attributes to its user.
LinkKind inner_kind(std::string_view attribute) noexcept {
  if (attribute == "_parameters") return LinkKind::parameter;
  if (attribute == "_buffers") return LinkKind::buffer;
  return LinkKind::child;
}

class InstanceVisitor final : public LinkVisitor {
 public:
  explicit InstanceVisitor(LinkVisitor& next) : next_(next) {}
  bool link(const Link& link, void* object) override {
    char buffer[64];
    const std::string_view name = text_of(link.name, buffer, sizeof buffer);
    if (is_dict(object) && (name == "_parameters" || name == "_buffers" || name == "_modules")) {
      return visit_dict(object, inner_kind(name), next_);
    }
    return next_.link({LinkKind::attribute, 0, link.name}, object);
  }

 private:
  LinkVisitor& next_;
};

// What a NamedTuple calls its entries, a tuple of as many texts; null for any other tuple.
const void* fields_of(const void* tuple) {
  const void* type = type_of(tuple);
  for (int depth = 0; type != nullptr && depth < 32; ++depth, type = field<const void*>(type, kTypeBase)) {
    if ((field<unsigned long>(type, kTypeFlags) >> kHeapTypeFlag & 1) == 0) break;
    const void* dict = field<const void*>(type, kTypeDict);
    const void* fields = dict != nullptr && is_dict(dict) ? dict_entry(dict, "_fields") : nullptr;
    if (fields == nullptr) continue;
    bool named = is_tuple(fields) && size_of(fields) == size_of(tuple);
    for (std::ptrdiff_t k = 0; named && k < size_of(fields); ++k) named = is_text(tuple_entry(fields, k));
    return named ? fields : nullptr;
  }
  return nullptr;
}

// What a class statement with `__slots__` keeps in the object itself: members that are references.
constexpr int kObjectMember = 16;  // T_OBJECT_EX

bool visit_slots(const void* object, LinkVisitor& visitor) {
  const void* type = type_of(object);
  for (int depth = 0; type != nullptr && depth < 32; ++depth, type = field<const void*>(type, kTypeBase)) {
    if ((field<unsigned long>(type, kTypeFlags) >> kHeapTypeFlag & 1) == 0) break;
    const char* member = field<const char*>(type, kTypeMembers);
    for (int k = 0; member != nullptr && k < 256 && field<const char*>(member, 0) != nullptr; ++k) {
      const auto offset = field<std::ptrdiff_t>(member, kMemberOffset);
      void* value =
          field<int>(member, kMemberType) == kObjectMember && offset > 0 ? field<void*>(object, offset) : nullptr;
      const Link link{LinkKind::attribute, 0, nullptr, nullptr, field<const char*>(member, 0)};
      if (value != nullptr && !visitor.link(link, value)) return false;
      member += kMemberSize;
    }
  }
  return true;
}

bool has_slots(const void* object) noexcept {
  const void* type = type_of(object);
  for (int depth = 0; type != nullptr && depth < 32; ++depth, type = field<const void*>(type, kTypeBase)) {
    if ((field<unsigned long>(type, kTypeFlags) >> kHeapTypeFlag & 1) == 0) break;
    const char* member = field<const char*>(type, kTypeMembers);
    if (member != nullptr && field<const char*>(member, 0) != nullptr) return true;
  }
  return false;
}

// Modules hold the world: that is not how a program names a tensor.
bool leads_nowhere(const void* object) noexcept {
  return is_text(object) || type_name(object) == "module";
}

// A class that a class statement has made. The others hold nothing but code.
bool is_class(const void* object) noexcept {
  return is_type(object) && (field<unsigned long>(object, kTypeFlags) >> kHeapTypeFlag & 1) != 0;
}

// What a class statement has kept as values: attributes, rather than the methods, which hold the program's code.
class ClassAttributes final : public LinkVisitor {
 public:
  explicit ClassAttributes(LinkVisitor& visitor) : visitor_(visitor) {}
  bool link(const Link& link, void* object) override {
    constexpr std::array<std::string_view, 7> kCode = {"classmethod",        "staticmethod",      "property",
                                                       "wrapper_descriptor", "method_descriptor", "getset_descriptor",
                                                       "member_descriptor"};
    const auto is_it = [object](std::string_view name) { return is_builtin(object, name); };
    const bool code = is_function(object) || is_type(object) || std::ranges::any_of(kCode, is_it);
    return code || visitor_.link(link, object);
  }

 private:
  LinkVisitor& visitor_;
};

// Whether an object is of a class, or of one derived from it. A class statement gives no name with a dot.
bool is_kind_of(const void* object, std::string_view name) noexcept {
  const void* type = type_of(object);
  for (int depth = 0; type != nullptr && depth < 32; ++depth, type = field<const void*>(type, kTypeBase)) {
    if (name == field<const char*>(type, kTypeName)) return true;
  }
  return false;
}

bool is_set(const void* object) noexcept {
  return is_kind_of(object, "set") || is_kind_of(object, "frozenset");
}

bool is_deque(const void* object) noexcept {
  return is_kind_of(object, "collections.deque");
}

bool is_partial(const void* object) noexcept {
  return is_kind_of(object, "functools.partial");
}

bool visit_set(void* set, LinkVisitor& visitor) {
  if (code_api()._PySet_NextEntry == nullptr) return true;
  std::ptrdiff_t at = 0;
  void* member = nullptr;
  std::ptrdiff_t hash = 0;
  for (std::ptrdiff_t k = 0; k < kMaxEntries && code_api()._PySet_NextEntry(set, &at, &member, &hash) != 0; ++k) {
    if (member != nullptr && !visitor.link({LinkKind::member, k}, member)) return false;
  }
  return true;
}

// A deque is a chain of blocks, each a link to the left, 64 items, and a link to the right; the outer two are filled in
// part. The numbers are held against each other before any is relied on.
constexpr std::ptrdiff_t kDequeLeft = 24;
constexpr std::ptrdiff_t kDequeRight = 32;
constexpr std::ptrdiff_t kDequeLeftIndex = 40;
constexpr std::ptrdiff_t kDequeRightIndex = 48;
constexpr std::ptrdiff_t kBlockItems = 8;
constexpr std::ptrdiff_t kBlockLength = 64;
constexpr std::ptrdiff_t kBlockRight = kBlockItems + kBlockLength * static_cast<std::ptrdiff_t>(sizeof(void*));

bool visit_deque(const void* deque, LinkVisitor& visitor) {
  const std::ptrdiff_t size = size_of(deque);
  const auto left = field<std::ptrdiff_t>(deque, kDequeLeftIndex);
  const auto right = field<std::ptrdiff_t>(deque, kDequeRightIndex);
  const void* block = field<const void*>(deque, kDequeLeft);
  const bool one_block = block == field<const void*>(deque, kDequeRight);
  const bool in_range = left >= 0 && left < kBlockLength && right >= 0 && right < kBlockLength;
  const std::ptrdiff_t spread = right - left + 1 - size;
  if (size <= 0 || !in_range || (one_block ? spread != 0 : spread % kBlockLength != 0)) return true;
  std::ptrdiff_t at = left;
  for (std::ptrdiff_t k = 0; k < size && k < kMaxEntries && block != nullptr; ++k) {
    void* object = field<void*>(block, kBlockItems + at * static_cast<std::ptrdiff_t>(sizeof(void*)));
    if (object != nullptr && !visitor.link({LinkKind::index, k}, object)) return false;
    if (++at < kBlockLength) continue;
    at = 0;
    block = field<const void*>(block, kBlockRight);
  }
  return true;
}

constexpr std::ptrdiff_t kPartialFunction = 16;  // partialobject: fn, args, kw

void visit_partial(const void* partial, LinkVisitor& visitor) {
  std::ptrdiff_t at = kPartialFunction;
  for (const char* name : {"func", "args", "keywords"}) {
    void* object = field<void*>(partial, at);
    if (object != nullptr && !visitor.link({LinkKind::attribute, 0, nullptr, nullptr, name}, object)) return;
    at += static_cast<std::ptrdiff_t>(sizeof(void*));
  }
}

// What a function closes over, and its attributes, if it has any: it gets their dictionary with the first.
void visit_function(const void* function, LinkVisitor& visitor) {
  const void* code = code_of_function(function);
  const void* cells = code_api().PyFunction_GetClosure(const_cast<void*>(function));
  const std::ptrdiff_t count = cells != nullptr && is_tuple(cells) ? size_of(cells) : 0;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    const void* cell = tuple_entry(cells, k);
    void* object = cell != nullptr && is_builtin(cell, "cell") ? field<void*>(cell, kCellContent) : nullptr;
    const void* name = code_free_name(code, k, count);
    if (object != nullptr && name != nullptr && !visitor.link({LinkKind::closure, k, name}, object)) return;
  }
  const auto offset = field<std::ptrdiff_t>(type_of(function), kDictOffset);
  void* attributes = offset > 0 ? field<void*>(function, offset) : nullptr;
  if (attributes != nullptr && is_dict(attributes)) visit_dict(attributes, LinkKind::attribute, visitor);
}

constexpr std::ptrdiff_t kNoSlot = std::numeric_limits<std::ptrdiff_t>::max();

struct SlotContent {
  void* object;
  bool cell;
};

SlotContent slot_content(const void* frame, std::ptrdiff_t index) noexcept {
  const auto at = index * static_cast<std::ptrdiff_t>(sizeof(void*));
  auto* object = const_cast<void*>(frame_reference(frame, frame_layout.locals + at));
  if (object == nullptr || !is_builtin(object, "cell")) return {object, false};
  return {field<void*>(object, kCellContent), true};
}

// The first slot of this name, which is the code's own object, from `begin` on; `end` where none before that has it.
std::ptrdiff_t slot_named(const void* code, const void* name, std::ptrdiff_t begin, std::ptrdiff_t end) noexcept {
  for (std::ptrdiff_t k = begin; k < end; ++k) {
    const void* other = code_local_name(code, k);
    if (other == name) return k;
    if (other == nullptr) break;
  }
  return end;
}

// Until CPython 3.10 an argument that inner functions use is not in its slot, but in a cell's of the same name behind.
std::ptrdiff_t slot_of_argument(const void* code, const void* name, std::ptrdiff_t index) noexcept {
  const std::ptrdiff_t cell = slot_named(code, name, index + 1, kNoSlot);
  return cell != kNoSlot ? cell : index;
}

}  // namespace

std::string_view type_name(const void* object) noexcept {
  return field<const char*>(type_of(object), kTypeName);
}

bool has_instance_dict(const void* object) noexcept {
  const void* type = type_of(object);
  const bool without = is_function(object) || is_partial(object);  // they would get one by being asked
  return !without && (field<std::ptrdiff_t>(type, kDictOffset) != 0 ||
                      (python.minor >= 11 && has_type_flag(object, kManagedDictFlag)));
}

bool leads_on(const void* object) noexcept {
  if (is_container(object)) return true;
  if (leads_nowhere(object)) return false;
  if (is_type(object)) return is_class(object);
  return has_instance_dict(object) || has_slots(object) || is_builtin(object, "method") || is_function(object) ||
         is_set(object) || is_deque(object) || is_partial(object);
}

void visit_links(void* object, LinkVisitor& visitor) {
  if (is_list(object)) {
    visit_sequence(field<const char*>(object, kListItems), size_of(object), nullptr, visitor);
  } else if (is_tuple(object)) {
    visit_sequence(static_cast<const char*>(object) + kTupleItems, size_of(object), fields_of(object), visitor);
  } else if (is_dict(object)) {
    visit_dict(object, LinkKind::key, visitor);
  } else if (is_builtin(object, "method")) {
    visitor.link({LinkKind::attribute, 0, nullptr, nullptr, "__self__"}, field<void*>(object, kMethodSelf));
  } else if (is_function(object)) {
    visit_function(object, visitor);
  } else if (is_partial(object)) {
    visit_partial(object, visitor);
  } else if (is_type(object)) {
    void* dict = is_class(object) ? field<void*>(object, kTypeDict) : nullptr;
    ClassAttributes attributes(visitor);
    if (dict != nullptr && is_dict(dict)) visit_dict(dict, LinkKind::attribute, attributes);
  } else if (!leads_nowhere(object)) {
    if (is_set(object) && !visit_set(object, visitor)) return;
    if (is_deque(object) && !visit_deque(object, visitor)) return;
    if (!visit_slots(object, visitor) || !has_instance_dict(object)) return;
    const OwnAttributes attributes(object);
    InstanceVisitor instance(visitor);
    if (attributes && is_dict(attributes.dict())) visit_dict(attributes.dict(), LinkKind::attribute, instance);
  }
}

void visit_frame(const void* frame, bool globals, LinkVisitor& visitor) {
  const void* code = frame_code(frame);
  if (code == nullptr || type_of(code) != python.code_type) return;
  const std::ptrdiff_t apart = python.minor < 11 ? code_all_arguments(code) : 0;
  for (std::ptrdiff_t k = 0; const void* name = code_local_name(code, k); ++k) {
    if (k >= apart && slot_named(code, name, 0, apart) < apart) continue;
    const auto [object, cell] = slot_content(frame, k < apart ? slot_of_argument(code, name, k) : k);
    const Link link{LinkKind::local, k, name, nullptr, nullptr, cell};
    if (object != nullptr && !visitor.link(link, object)) return;
  }
  if (!globals) return;
  auto* dict = const_cast<void*>(frame_reference(frame, frame_layout.globals));
  if (dict != nullptr && is_dict(dict)) visit_dict(dict, LinkKind::global, visitor);
}

}  // namespace devsan::hooks
