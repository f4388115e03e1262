# The headers of the CUDA Driver API, for sources that interpose its calls; nothing ever links libcuda. They come from a
# CUDA toolkit or, without one, from NVIDIA's runtime wheel in the virtual environment (pip install nvidia-cuda-runtime).
#
#   devsan_cuda_headers   an interface target: the include directory, and DEVSAN_HAVE_CUDA_HEADERS=1 where cuda.h was found
#
# Without the headers the target is empty, and what needs them is left out of the build.
set(DEVSAN_VENV "${PROJECT_SOURCE_DIR}/.venv" CACHE PATH "Virtual environment in which NVIDIA's wheels are looked for")
set(DEVSAN_CUDA_TOOLKIT "/usr/local/cuda" CACHE PATH "CUDA toolkit that is tried before those wheels")

file(GLOB devsan_cuda_wheels "${DEVSAN_VENV}/lib/python3*/site-packages/nvidia/*/include")
find_path(
  DEVSAN_CUDA_INCLUDE_DIR cuda.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH "${DEVSAN_CUDA_TOOLKIT}" ${devsan_cuda_wheels}
  PATH_SUFFIXES include
  DOC "Directory of cuda.h")

add_library(devsan_cuda_headers INTERFACE)
if(DEVSAN_CUDA_INCLUDE_DIR)
  target_include_directories(devsan_cuda_headers SYSTEM INTERFACE "${DEVSAN_CUDA_INCLUDE_DIR}")
  target_compile_definitions(devsan_cuda_headers INTERFACE DEVSAN_HAVE_CUDA_HEADERS=1)
  message(STATUS "CUDA driver headers: ${DEVSAN_CUDA_INCLUDE_DIR}")
else()
  message(STATUS "CUDA driver headers: none found")
endif()
