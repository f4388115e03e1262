// A diagnosis for a terminal.
#pragma once

#include <string>

#include "doctor/diagnosis.h"
#include "report/text/style.h"

namespace devsan::launch {

std::string render_diagnosis(const doctor::Diagnosis& diagnosis, const report::Style& style);

}  // namespace devsan::launch
