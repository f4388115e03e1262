// How an installed library stands to the release that the known keys are of.
#pragma once

#include "doctor/facts.h"

namespace devsan::doctor {

enum class Release { unknown, older, same, newer };

Release deepspeed_release(const Facts& facts);
Release accelerate_release(const Facts& facts);

}  // namespace devsan::doctor
