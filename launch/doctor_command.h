// `devsan doctor`
#pragma once

#include <string>

#include "launch/doctor_facts.h"
#include "report/command_output.h"

namespace CLI {
class App;
}

namespace devsan::launch {

struct DoctorRequest {
  DoctorFlags flags;
  bool json = false;
  std::string json_file;  // "" or "-" is the standard output
  report::Colour colour = report::Colour::automatic;
};

// Puts its options onto the command.
void add_doctor_options(CLI::App& command, DoctorRequest& request);

// Prints the diagnosis. 0; 1 where it has an error or cannot be written.
int doctor_command(const DoctorRequest& request, const std::string& version);

}  // namespace devsan::launch
