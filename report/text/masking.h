// What must not leave the machine with a report that is meant for others.
#pragma once

#include <string>
#include <string_view>

namespace devsan::report {

// Home directories become "~". What looks like a secret becomes "***": values that are assigned to names like
// `api_key`, passwords in addresses, and tokens of well-known services.
std::string masked(std::string_view text);

}  // namespace devsan::report
