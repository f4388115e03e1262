// What attributes of a library's object say of where the object's tensors belong.
//
// Runs no code of the program and keeps no reference. With the GIL held (PythonSection). May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace devsan::hooks {

// Whether objects of the class have such attributes.
bool has_settings(const void* type) noexcept;

bool is_setting(std::string_view name) noexcept;

// Whether a module says by an attribute of this name how its experts are divided among ranks.
bool is_setting_of_experts(std::string_view name) noexcept;

// "cuda:1" where an attribute is a torch.device, or the name of one, and one device alone is meant; empty otherwise.
std::string device_said(const void* value);

class SettingVisitor {
 public:
  // `entry` of a dictionary, by its number; -1 where the attribute is none.
  virtual void setting(std::string_view name, std::ptrdiff_t entry, const std::string& value) = 0;

 protected:
  ~SettingVisitor() = default;
};

// Of a dictionary every entry; of values that say nothing, nothing.
void visit_setting(std::string_view name, const void* value, SettingVisitor& visitor);

}  // namespace devsan::hooks
