// A diagnosis as JSON; doctor.schema.json describes it.
#pragma once

#include <string>

#include "doctor/facts.h"

namespace devsan::doctor {

std::string render_json(const Facts& facts, const Diagnosis& diagnosis, const std::string& version);

}  // namespace devsan::doctor
