#include "hooks/inprocess/snapshot/object_members.h"

#include <cstddef>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/snapshot/object_graph.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxBases = 32;
constexpr int kMaxMembers = 256;
constexpr int kObject = 6;         // T_OBJECT
constexpr int kObjectOrNone = 16;  // T_OBJECT_EX

void* declared_member(const void* object, std::string_view name) noexcept {
  const void* type = type_of(object);
  for (int depth = 0; type != nullptr && depth < kMaxBases; ++depth, type = field<const void*>(type, kTypeBase)) {
    const char* member = field<const char*>(type, kTypeMembers);
    for (int k = 0; member != nullptr && k < kMaxMembers && field<const char*>(member, 0) != nullptr; ++k) {
      const int kind = field<int>(member, kMemberType);
      const auto offset = field<std::ptrdiff_t>(member, kMemberOffset);
      const bool is_object = (kind == kObject || kind == kObjectOrNone) && offset > 0;
      if (is_object && name == field<const char*>(member, 0)) return field<void*>(object, offset);
      member += kMemberSize;
    }
  }
  return nullptr;
}

void* dictionary_member(const void* object, std::string_view name) noexcept {
  return has_instance_dict(object) ? OwnAttributes(object)[name] : nullptr;  // the object keeps what it has
}

}  // namespace

void* member_of(const void* object, std::string_view name) noexcept {
  if (object == nullptr || object == python.none || is_type(object) || is_text(object)) return nullptr;
  void* found = declared_member(object, name);
  if (found == nullptr) found = dictionary_member(object, name);
  return found == python.none ? nullptr : found;
}

std::string_view text_member_of(const void* object, std::string_view name) noexcept {
  const void* member = member_of(object, name);
  return member != nullptr && is_text(member) ? text_of(member, nullptr, 0) : std::string_view();
}

int number_member_of(const void* object, std::string_view name, int otherwise) noexcept {
  const std::optional<long> number = integer_in(member_of(object, name));
  return number && *number == static_cast<int>(*number) ? static_cast<int>(*number) : otherwise;
}

bool is_instance_of(const void* object, std::string_view name) noexcept {
  if (object == nullptr) return false;
  const void* type = type_of(object);
  for (int depth = 0; type != nullptr && depth < kMaxBases; ++depth, type = field<const void*>(type, kTypeBase)) {
    const std::string_view own = field<const char*>(type, kTypeName);
    if (own.substr(own.rfind('.') + 1) == name) return true;
  }
  return false;
}

const void* generator_of(const void* object) noexcept {
  constexpr std::ptrdiff_t kGenerator = 16;  // THPGenerator::cdata
  return type_name(object) == "torch._C.Generator" ? field<const void*>(object, kGenerator) : nullptr;
}

}  // namespace devsan::hooks
