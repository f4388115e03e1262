// The Python face: what torch's extension module has in a build with CUDA.
#pragma once

namespace devsan::sim {

// Where the Python files of the simulation are; to be called before the module is made. `anchor` is an address inside
// libdevsan.so: the files lie at a fixed place relative to it.
void locate_python_files(const void* anchor);

// Runs the Python face on torch's extension module. Needs the GIL.
void extend_module(void* module);

}  // namespace devsan::sim
