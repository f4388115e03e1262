// Which build of torch lies in a folder, told by its files. Runs inside the traced process as well: no memory from the
// heap, no exceptions.
#pragma once

#include "trace/fixed_text.h"

namespace devsan {

// How torch's functions take a std::string, which their names tell.
enum class CxxAbi {
  none,     // there is no libc10.so
  unknown,  // its names do not tell
  pre_cxx11,
  cxx11,
};

struct TorchIdentity {
  FixedText<64> version;      // "2.13.0+cpu"
  FixedText<64> git_version;  // the commit; builds of one release for CPUs and for GPUs share it
  CxxAbi abi = CxxAbi::none;
};

// `libtorch_cpu` is a path: version.py lies beside the folder of libraries, libc10.so in it. What cannot be read stays
// empty.
TorchIdentity identify_torch(const char* libtorch_cpu) noexcept;

CxxAbi cxx_abi_of(const char* libc10) noexcept;

// "cxx11", "pre-cxx11"; "unknown"
const char* name_of(CxxAbi abi) noexcept;

// Whether `version` is older than that one; false where it is no version.
bool is_older(const char* version, int major, int minor) noexcept;

}  // namespace devsan
