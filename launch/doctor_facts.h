// What `devsan doctor` reads: the machine, the driver, a Python with its packages, and configs.
#pragma once

#include <optional>
#include <string>

#include "doctor/facts.h"

namespace devsan::launch {

struct DoctorFlags {
  std::string python = "python3";
  std::optional<std::string> deepspeed;   // a file
  std::optional<std::string> accelerate;  // a file
  doctor::Plan plan;
  bool driver = true;  // also what the driver says of this machine's GPUs
  bool hooks = true;   // also which hooks devsan would use, which starts the Python
};

doctor::Facts gather_facts(const DoctorFlags& flags);

}  // namespace devsan::launch
