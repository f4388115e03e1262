// What an accelerate config says, by the names of accelerate's options.
#pragma once

#include <string>

#include "doctor/config/document.h"

namespace devsan::doctor {

// The value of a section's key, also where the prefix was left out; null where there is none.
const Json* accelerate_value(const Json& config, const std::string& section, const std::string& key);

// What accelerate makes of it: its text, or `unset`.
std::string accelerate_text(const Json& config, const std::string& section, const std::string& key,
                            const std::string& unset);

// Whether accelerate reads a section for what the config asks for.
bool reads_section(const Json& config, const std::string& section);

}  // namespace devsan::doctor
