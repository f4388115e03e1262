// The questions to the driver's libraries. They run in the process that ask_driver starts.
#pragma once

#include "doctor/driver/driver.h"

namespace devsan::doctor {

void ask_cuda(const std::string& library, DriverAnswer& answer);
void ask_nvml(const std::string& library, DriverAnswer& answer);

}  // namespace devsan::doctor
