// Texts that are compared as a whole.
#pragma once

#include <string>

namespace devsan::report {

// Checks `text` against tests/unit/report/golden/NAME. With DEVSAN_UPDATE_GOLDEN=1 in the environment the file is
// written instead, for a person to look at.
void check_golden(const std::string& name, const std::string& text);

}  // namespace devsan::report
