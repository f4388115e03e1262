// What c10d's operators are called in Python.
#pragma once

#include <string>
#include <string_view>

namespace devsan::report {

// "all_reduce", from "c10d::allreduce_".
std::string collective_name(std::string_view op);

}  // namespace devsan::report
