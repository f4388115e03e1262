// The list of calls, and (where CUDA's headers are there) what it says of them against what CUDA says.
#include "preload/cuda_calls.h"

#include <catch2/catch.hpp>
#include <string>

#ifdef DEVSAN_HAVE_CUDA_HEADERS
#define __CUDA_API_VERSION_INTERNAL  // all versions of all entry points
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <tuple>
#include <type_traits>
#endif

namespace devsan::cuda {
namespace {

std::string entry_point(const char* base, int version, bool per_thread) {
  const CallId id = find_entry_point(base, version, per_thread);
  return id == CallId::count ? "" : call_of(id).symbol;
}

TEST_CASE("calls are found by the name that a library exports") {
  for (std::size_t i = 0; i < kCallCount; ++i) CHECK(find_call(kCalls[i].symbol) == static_cast<CallId>(i));
  for (const char* other : {"", "c", "cu", "cuInit", "cuMemAlloc", "cudaMallocX", "cublasCreate_v2", "dlopen"}) {
    CHECK(find_call(other) == CallId::count);
  }
  CHECK(find_call(nullptr) == CallId::count);
}

TEST_CASE("the driver's entry points are told by version and kind of default stream") {
  CHECK(entry_point("cuMemAlloc", 3020, false) == "cuMemAlloc_v2");
  CHECK(entry_point("cuMemAlloc", 13000, true) == "cuMemAlloc_v2");
  CHECK(entry_point("cuMemcpyHtoD", 12040, false) == "cuMemcpyHtoD_v2");
  CHECK(entry_point("cuMemcpyHtoD", 12040, true) == "cuMemcpyHtoD_v2_ptds");
  CHECK(entry_point("cuStreamSynchronize", 12040, true) == "cuStreamSynchronize_ptsz");
  CHECK(entry_point("cuGetProcAddress", 11030, false) == "cuGetProcAddress");
  CHECK(entry_point("cuGetProcAddress", 12000, false) == "cuGetProcAddress_v2");
  CHECK(entry_point("cuCtxSynchronize", 12090, false) == "cuCtxSynchronize");
  CHECK(entry_point("cuCtxSynchronize", 13000, false) == "cuCtxSynchronize_v2");
}

TEST_CASE("an entry point whose arguments are not known is none of the list") {
  CHECK(entry_point("cuMemAlloc", 3010, false).empty());  // of 32 bits
  CHECK(entry_point("cuMemcpyHtoD", 5000, true).empty());
  CHECK(entry_point("cuLaunchKernel", 12000, false).empty());
  CHECK(entry_point("cudaMalloc", 12000, false).empty());
}

#ifdef DEVSAN_HAVE_CUDA_HEADERS

template <class Function>
struct Signature;
template <class Result, class... Parameters>
struct Signature<Result (*)(Parameters...)> {
  using Types = std::tuple<Parameters...>;
  static constexpr std::size_t kCount = sizeof...(Parameters);
  static constexpr bool kWords =
      sizeof(Result) == 4 && (... && (std::is_integral_v<Parameters> || std::is_pointer_v<Parameters> ||
                                      std::is_enum_v<Parameters> || sizeof(Parameters) > 16));
  static constexpr bool kOnStack = kCount > 6 || (... || (sizeof(Parameters) > 16));
  static constexpr std::size_t kStackBytes = [] {
    std::size_t words = 0;
    std::size_t stack = 0;
    ((sizeof(Parameters) > 16 ? stack += sizeof(Parameters) : ++words), ...);
    return stack + (words > 6 ? (words - 6) * 8 : 0);
  }();
};

template <class Function>
using TypesOf = typename Signature<Function>::Types;

// Whether argument number kIndex, if there is one, is as `Test` wants it.
template <class Function, int kIndex, template <class> class Test>
constexpr bool fits() {
  if constexpr (kIndex < 0) {
    return true;
  } else if constexpr (static_cast<std::size_t>(kIndex) >= Signature<Function>::kCount) {
    return false;
  } else {
    return Test<std::tuple_element_t<kIndex, TypesOf<Function>>>::value;
  }
}

template <class T>
struct IsSize : std::is_same<T, std::size_t> {};
template <class T>
struct IsStream : std::is_same<T, CUstream> {};
template <class T>
struct IsContext : std::is_same<T, CUcontext> {};
template <class T>
struct IsHow : std::is_same<T, cudaMemcpyKind> {};
template <class T>
struct IsHandle : std::is_same<T, CUmemGenericAllocationHandle> {};
template <class T>
struct IsProperties : std::is_same<T, const CUmemAllocationProp*> {};
template <class T>
struct IsPlaceOfWord
    : std::bool_constant<std::is_pointer_v<T> &&
                         (sizeof(std::remove_pointer_t<std::conditional_t<std::is_same_v<T, void*>, void**, T>>) ==
                          8)> {};
template <class T>
struct IsWord : std::bool_constant<sizeof(T) == 8> {};

template <class Function, CallId kId>
constexpr bool arguments_fit() {
  constexpr Arguments kSaid = call_of(kId).arguments;
  return Signature<Function>::kWords && kSaid.on_stack == Signature<Function>::kOnStack &&
         Signature<Function>::kStackBytes <= 64 && fits<Function, kSaid.out, IsPlaceOfWord>() &&
         fits<Function, kSaid.address, IsWord>() && fits<Function, kSaid.source, IsWord>() &&
         fits<Function, kSaid.bytes, IsSize>() && fits<Function, kSaid.rows, IsSize>() &&
         fits<Function, kSaid.pitch, IsPlaceOfWord>() && fits<Function, kSaid.stream, IsStream>() &&
         fits<Function, kSaid.handle, IsHandle>() && fits<Function, kSaid.properties, IsProperties>() &&
         fits<Function, kSaid.how, IsHow>() && fits<Function, kSaid.context, IsContext>();
}

#define TYPE_OF_none(base, since) PFN_##base##_v##since
#define TYPE_OF_legacy(base, since) PFN_##base##_v##since
#define TYPE_OF_ptds(base, since) PFN_##base##_v##since##_ptds
#define TYPE_OF_ptsz(base, since) PFN_##base##_v##since##_ptsz
#define DEVSAN_CUDA_CALL(symbol, base, since, mode, kind, ...)                                                \
  static_assert(std::is_same_v<decltype(&::symbol), TYPE_OF_##mode(base, since)>, #symbol " is another one"); \
  static_assert(arguments_fit<decltype(&::symbol), CallId::symbol>(), #symbol " has other arguments");
#define DEVSAN_CUDA_RUNTIME_CALL(symbol, mode, kind, ...) DEVSAN_CHECK_##mode(symbol)
// The headers declare the runtime's calls without the kind of default stream in their names.
#define DEVSAN_CHECK_none(symbol) \
  static_assert(arguments_fit<decltype(&::symbol), CallId::symbol>(), #symbol " has other arguments");
#define DEVSAN_CHECK_legacy(symbol) DEVSAN_CHECK_none(symbol)
#define DEVSAN_CHECK_ptds(symbol)
#define DEVSAN_CHECK_ptsz(symbol)
#include "preload/cuda_calls.def"
#undef DEVSAN_CUDA_CALL
#undef DEVSAN_CUDA_RUNTIME_CALL

TEST_CASE("the newest version that the list knows is that of the headers, or older") {
  CHECK(kKnownVersion <= CUDA_VERSION);
}

// Read as words by preload/cuda_reading.cpp.
TEST_CASE("the structs that describe a copy lie as they are read") {
  CHECK(offsetof(CUDA_MEMCPY2D, srcMemoryType) == 2 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, srcHost) == 3 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, srcDevice) == 4 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, dstMemoryType) == 9 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, dstHost) == 10 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, dstDevice) == 11 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, WidthInBytes) == 14 * 8);
  CHECK(offsetof(CUDA_MEMCPY2D, Height) == 15 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, srcMemoryType) == 4 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, srcHost) == 5 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, dstMemoryType) == 15 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, dstDevice) == 17 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, WidthInBytes) == 22 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D, Depth) == 24 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D_PEER, srcMemoryType) == 4 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D_PEER, dstDevice) == 17 * 8);
  CHECK(offsetof(CUDA_MEMCPY3D_PEER, Depth) == 24 * 8);
  CHECK(offsetof(CUmemAllocationProp, location) == 8);
}

#endif

}  // namespace
}  // namespace devsan::cuda
