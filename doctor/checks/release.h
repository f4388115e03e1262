// How the installed DeepSpeed stands to the release that the known keys are of.
#pragma once

#include "doctor/facts.h"

namespace devsan::doctor {

enum class Release { unknown, older, same, newer };

Release release_of(const Facts& facts);

}  // namespace devsan::doctor
