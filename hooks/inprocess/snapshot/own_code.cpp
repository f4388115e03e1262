#include "hooks/inprocess/snapshot/own_code.h"

#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxCode = 4096;
constexpr int kMaxCallers = 24;
constexpr int kMaxWrappers = 4;
constexpr std::ptrdiff_t kFirstField = 16;  // of bound methods, properties, class and static methods, partials, cells
constexpr std::ptrdiff_t kMaxNames = 4096;

bool is_program_code(const void* code) noexcept {
  return (code_table.classify(code) & (kNoCode | kTorchCode | kLibraryCode)) == 0;
}

// What a wrapper made by functools.wraps, or by a decorator, calls: the one function in its closure.
const void* function_in_closure(const void* function) noexcept {
  const void* cells = code_api().PyFunction_GetClosure(const_cast<void*>(function));
  const void* found = nullptr;
  if (cells == nullptr || !is_tuple(cells)) return nullptr;
  for (std::ptrdiff_t k = 0; k < size_of(cells); ++k) {
    const void* cell = field<const void*>(cells, kTupleItems + k * static_cast<std::ptrdiff_t>(sizeof(void*)));
    const void* content = cell != nullptr ? field<const void*>(cell, kFirstField) : nullptr;
    if (content == nullptr || !is_function(content)) continue;
    if (found != nullptr) return nullptr;
    found = content;
  }
  return found;
}

template <class Visit>
void visit_entries(const void* dict, const Visit& visit) {
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  if (dict == nullptr || !is_dict(dict)) return;
  for (std::ptrdiff_t k = 0; k < kMaxNames && python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0;
       ++k) {
    if (value != nullptr) visit(value);
  }
}

template <class Visit>
void visit_tuple(const void* tuple, const Visit& visit) {
  if (tuple == nullptr || !is_tuple(tuple)) return;
  for (std::ptrdiff_t k = 0; k < size_of(tuple) && k < kMaxNames; ++k) {
    const void* entry = field<const void*>(tuple, kTupleItems + k * static_cast<std::ptrdiff_t>(sizeof(void*)));
    if (entry != nullptr) visit(entry);
  }
}

}  // namespace

const void* function_behind(const void* object) {
  for (int depth = 0; object != nullptr && depth < kMaxWrappers; ++depth) {
    if (is_function(object)) {
      if ((code_table.classify(code_of_function(object)) & kTorchCode) == 0) return object;
      object = function_in_closure(object);  // torch's own decorators, such as no_grad()
      continue;
    }
    bool wraps = type_name(object) == "functools.partial";
    for (const char* name : {"method", "property", "classmethod", "staticmethod"}) {
      wraps = wraps || is_builtin(object, name);
    }
    if (!wraps) return nullptr;
    object = field<const void*>(object, kFirstField);
  }
  return nullptr;
}

class OwnCode::Gatherer final : public LinkVisitor {
 public:
  explicit Gatherer(OwnCode& into) : into_(into) {}

  void add_frame(const void* frame) {
    add_code(frame_code(frame));
    auto* globals = const_cast<void*>(frame_reference(frame, frame_layout.globals));
    visit_frame(frame, globals != nullptr && seen_.insert(globals).second, *this);
  }

  bool link(const Link&, void* object) override {
    if (is_type(object)) {
      if (seen_.insert(object).second) {
        visit_entries(field<const void*>(object, kTypeDict), [&](const void* value) { add_function(value); });
      }
    } else {
      add_function(object);
    }
    return into_.code_.size() < kMaxCode;
  }

 private:
  void add_function(const void* object) {
    const void* function = function_behind(object);
    if (function == nullptr || !is_program_code(code_of_function(function)) || !seen_.insert(function).second) return;
    into_.functions_.push_back(function);
    add_code(code_of_function(function));
  }

  void add_code(const void* code) {
    if (code == nullptr || type_of(code) != python.code_type || into_.code_.size() >= kMaxCode) return;
    if (!seen_.insert(code).second) return;
    into_.code_.push_back(code);
    visit_tuple(code_constants(code), [&](const void* constant) { add_code(constant); });
  }

  OwnCode& into_;
  std::unordered_set<const void*> seen_;
};

OwnCode::OwnCode(const void* innermost_frame) {
  Gatherer gatherer(*this);
  const void* frame = innermost_frame;
  for (int depth = 0; frame != nullptr && depth < kMaxCallers; ++depth, frame = frame_previous(frame)) {
    if (is_program_code(frame_code(frame))) gatherer.add_frame(frame);
  }
}

std::vector<const void*> functions_of_type(const void* type) {
  std::vector<const void*> functions;
  visit_tuple(field<const void*>(type, kTypeMro), [&](const void* base) {
    visit_entries(field<const void*>(base, kTypeDict), [&](const void* value) {
      const void* function = function_behind(value);
      if (function != nullptr && functions.size() < kMaxCode) functions.push_back(function);
    });
  });
  return functions;
}

const void* method_named(const void* type, std::string_view name) {
  for (const void* function : functions_of_type(type)) {
    const void* code = code_of_function(function);
    if (is_name(field<const void*>(code, code_members.name), name)) return code;
  }
  return nullptr;
}

}  // namespace devsan::hooks
