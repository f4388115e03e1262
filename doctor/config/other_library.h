// A config that was given for the wrong library.
#pragma once

#include "doctor/config/document.h"

namespace devsan::doctor {

enum class Library { deepspeed, accelerate };

// Gives the document an error if its keys are those of the other library's config.
void refuse_of_other_library(Document& document, Library expected);

}  // namespace devsan::doctor
