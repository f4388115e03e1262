// Which Python a command will run, as far as that can be told before running it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::launch {

// Follows the command as execvp would: a name that is a Python's, a script whose first line names one (torchrun,
// accelerate, deepspeed, …, also by way of env), a Python further on in the command (`timeout 60 python x.py`), or
// else `python3`. An absolute path; none where there is no such program.
std::optional<std::string> find_python(const std::vector<std::string>& command);

struct CertainPython {
  std::string path;
  bool by_script;  // the first line of the command's file names it
};

// The Python that a command certainly runs. None for what starts others (`bash`, `timeout`, `env NAME=value`), and
// where a further word is a Python's name (`conda run python`).
std::optional<CertainPython> find_certain_python(const std::vector<std::string>& command);

// The file that a command's name means: itself where it has a slash, else the first one in PATH.
std::optional<std::string> find_program(std::string_view name);

// "python", "python3", "python3.11", "pypy3" by a path's last part.
bool is_python_name(std::string_view path);

// The interpreter that the first lines of a script name; none where that is no Python.
std::optional<std::string> python_of_script(std::string_view text);

}  // namespace devsan::launch
