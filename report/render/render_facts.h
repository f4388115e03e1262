// `devsan view --facts`: what was recorded around each finding, as JSON.
#pragma once

#include <string>

#include "report/model/facts.h"

namespace devsan::report {

std::string render_facts(const FactsOfRun& facts, const Sources& sources);

}  // namespace devsan::report
