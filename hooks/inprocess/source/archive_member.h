// Members of archives that Python imports from: "/dir/program.pyz/package/module.py".
#pragma once

#include <string>
#include <string_view>

namespace devsan::hooks {

// The text of such a member; empty where the path leads to none. May throw std::bad_alloc.
std::string archive_member(std::string_view path);

}  // namespace devsan::hooks
