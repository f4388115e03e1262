#include "hooks/inprocess/snapshot/callees.h"

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/snapshot/own_code.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

void* object_in(const NameScope& scope, std::string_view path) {
  if (scope.frame != nullptr) return object_behind(scope.frame, path);
  constexpr std::string_view kSelf = "self";
  const bool own = path.starts_with(kSelf) && end_of_name(path, 0) == kSelf.size();
  void* object = own ? scope.self : nullptr;
  path.remove_prefix(own ? kSelf.size() : 0);
  while (object != nullptr && !path.empty()) object = next_object(nullptr, object, path);
  return object;
}

Callee method_of(void* object, std::string_view name) {
  const void* code = method_named(is_type(object) ? object : type_of(object), name);
  return code != nullptr ? Callee{code, object} : Callee{};
}

Callee called(void* object) {
  if (const void* function = function_behind(object)) {
    return {code_of_function(function), is_builtin(object, "method") ? field<void*>(object, kMethodSelf) : nullptr};
  }
  if (is_type(object) || is_builtin(object, "method")) return {};
  const Callee forward = method_of(object, "forward");  // of a module, which torch calls
  return forward.code != nullptr ? forward : method_of(object, "__call__");
}

}  // namespace

Callee callee_behind(const NameScope& scope, std::string_view path) {
  if (void* object = object_in(scope, path)) return called(object);
  const std::size_t dot = path.rfind('.');
  void* owner = dot != path.npos ? object_in(scope, path.substr(0, dot)) : nullptr;
  return owner != nullptr ? method_of(owner, path.substr(dot + 1)) : Callee{};
}

}  // namespace devsan::hooks
