// What a trace says about the run that it is of.
#pragma once

#include <string_view>

#include "trace/fixed_text.h"
#include "trace/recorder.h"

namespace devsan {

using CommandText = FixedText<8192>;

// `arguments` are separated by NUL bytes, as /proc/self/cmdline has them. Gives one line that a shell would read, in
// which what looks like a secret is "***": the values of options and variables whose name says so, and passwords in
// URLs.
CommandText masked_command(std::string_view arguments) noexcept;

// `torch_home` is the directory of the torch package, or of LibTorch.
void write_run_info(trace::Recorder* recorder, const char* torch_home, const char* python_version) noexcept;

}  // namespace devsan
