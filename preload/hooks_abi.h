// What libdevsan.so and the libraries it loads into the process say to each other. Both sides are built from one source
// tree; kHooksAbi guards against a cached library of another version.
//
//   libdevsan_torch.so exports devsan_hooks_attach, libdevsan_sim.so exports devsan_sim_attach and
//   devsan_sim_module_created. libdevsan.so exports devsan_thread_block, found through the global scope.
//
// The libraries are compiled with the C++ ABI of the torch at hand, which until torch 2.5 is another one than that of
// libdevsan.so: what passes between them holds no std::string and no container.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/finding_place.h"
#include "trace/recorder.h"

namespace devsan {

inline constexpr std::uint32_t kHooksAbi = 14;

// What the libraries need to know of the options of the process.
struct LibraryOptions {
  bool halt = false;
  int simulated_devices = 0;
  std::uint64_t simulated_memory = 0;  // bytes of each simulated device
  bool late_copies = false;            // on simulated devices
  bool guard = false;                  // their pages, from the host
  bool source = true;                  // the text of files goes into the trace
  int stop_after = 0;                  // optimizer steps; 0: never
  int hang_after = 0;                  // seconds that a collective may take; 0: any time
  bool placements = true;              // where tensors are is looked at once a step
};

// Code of the program touched memory of a device that only the device may touch. No tensor's data: addresses alone.
struct HostAccess {
  const void* address;
  const void* block;    // the memory that it lies in; null where it has been given back
  std::uint64_t bytes;  // of the block
  int device;           // -1 where `block` is null
  bool writes;
  const void* instruction;
  const void* caller;  // what the stack's top holds: the caller's address, where `instruction` is a leaf function's
};

// What becomes of a device's streams, events and memory, told to the hooks by whoever sees it, before the call returns:
// the simulation, or, on real devices, the wrappers of CUDA's calls. A stream is named by its device and a number: on
// simulated devices PyTorch's id of it, on real ones what DeviceCalls::stream_of says; an event by an address. Any
// thread may call. A device of -1 is one that is not known.
struct DeviceWatch {
  // This process records nothing yet: a forked child that uses a device before it runs an operator. Recording begins.
  void (*begins)();
  void (*recorded)(const void* event, int device, std::int64_t stream);
  void (*destroyed)(const void* event);
  void (*stream_destroyed)(int device, std::int64_t stream);
  void (*waits_for)(int device, std::int64_t stream, const void* event);  // the stream, not the host
  // The host waited, or, where `waited` is false, asked and heard that there is nothing to wait for.
  void (*host_saw_event)(const void* event, bool waited);
  void (*host_saw_stream)(int device, std::int64_t stream, bool waited);
  void (*host_saw_device)(int device);
  // An error with this text is about to be thrown: calls of the simulation are not replaced, so nobody else sees it.
  void (*fails)(const char* message);
  // Called in a signal handler of the thread that did, which may be anywhere in code that is not devsan's; one thread
  // at a time. Safe there: no heap, no lock that is waited for.
  void (*host_accessed)(const HostAccess& access);
  // The same of pinned memory whose pages were closed (PinnedPages), and are open again: the thread goes on.
  void (*host_touched)(const void* address, bool writes);
  // What a collective of simulated devices returned, a c10d::Work, has come to its end.
  void (*work_ended)(const void* work, bool failed);
};

// A copy between the host and a real device that a call of CUDA's made.
struct CrossingCopy {
  std::uint64_t number = 0;  // of the thread's copies; 0: it has made none
  int device = -1;
  std::int64_t stream = 0;
  bool pending = false;  // it may be running after the call has returned
};

// What is known of CUDA's calls where devices are real. Any thread may ask; nobody waits. While a stream of the process
// is being captured the driver is asked nothing.
struct DeviceCalls {
  bool (*captures)();           // whether any stream of the process is being captured
  CrossingCopy (*last_copy)();  // of the calling thread
  // The name of the stream of that handle (cudaStream_t, 0 the default one of `device`): its device, and its number.
  int (*stream_of)(std::uint64_t handle, int device, std::int64_t* stream);
  // Whether memory of the host is certainly not known to the driver. After a successful call of CUDA's on the thread.
  bool (*pageable)(const void* address);
  std::uint64_t (*capacity)(int device);  // bytes; 0: not known
};

// Pages of pinned memory that the host is not to touch for a while: whoever does is told of (DeviceWatch), and goes on.
// Offered by the simulation, whose pinned memory lies on pages of its own. `block` is where such memory begins; of
// other memory nothing is closed. Any thread may call; in a signal handler `open` alone.
struct PinnedPages {
  // The pages that have one of these bytes of the block; for writes alone, or for everything. False where that cannot
  // be.
  bool (*close)(const void* block, std::uint64_t begin, std::uint64_t end, bool for_writes);
  void (*open)(const void* block);
};

// Given to a library when it is loaded. Everything lives as long as the process.
struct HostServices {
  std::uint32_t abi;
  trace::Recorder* recorder;
  LibraryOptions options;
  // Writes one line to the stderr that the process was started with, prefixed "devsan: "; nothing when `quiet` is set
  // or when fd 2 is another file by now. `text` may hold several lines.
  void (*say)(const char* text);
  // Whether the file of suppressions that the process was given silences a finding.
  bool (*suppressed)(const trace::FindingPlace& place);
  // To be called in a fork child that has a trace of its own now: writes the suppressions and the rules into it.
  void (*record_suppressions)();
  // Where the hooks, which are loaded last, leave what the simulation calls; null until then.
  std::atomic<const DeviceWatch*>* device_watch;
  // From now on the wrappers that wait for a demand (Replacement::on_demand) are called. Any thread, any number of
  // times; another thread's patching is waited for a moment only.
  void (*demand)();
  // Bytes of host memory that are pinned: added up by whoever sees it, CUDA's calls or the simulation.
  std::atomic<std::uint64_t>* pinned_bytes;
  // Where the simulation, which is loaded before the hooks, leaves what closes pages; null without one.
  std::atomic<const PinnedPages*>* pinned_pages;
  const DeviceCalls* device_calls;
};

// One function that is replaced in the PLT and GOT slots of every loaded object. `real` must be written in the table as
// the address of the function itself: the symbol that its relocation names is the symbol that slots are matched by.
// A weak function that the target torch lacks leaves `real` null, and the entry is passed over; with `by_name` it is a
// function of a library that the hooks do not link, and any slot that names it is its own.
// `in_tables`: its address as a value, in a table of functions that another object calls through, is replaced too.
// `on_demand`: the object that holds the function goes on calling it, which costs nothing, until the hooks demand it.
// Its size is a power of two, so that tables of several objects, which the linker aligns, make one.
struct alignas(32) Replacement {
  void* real;
  void* wrapper;
  bool by_name = false;
  bool in_tables = false;
  bool on_demand = false;
};
static_assert(sizeof(Replacement) == 32);

// An entry of a table of functions that is replaced where it is: a virtual function's that no symbol names, so that no
// relocation tells what it is. The wrapper knows what was there.
struct TableEntry {
  void** slot;
  void* wrapper;
};

// Asked when the program ends the process without running exit handlers, with the status that it gave; returns the one
// to end with.
using StatusAtEnd = int (*)(int status);

struct HookTable {
  std::uint32_t abi;
  std::uint32_t count;
  const Replacement* replacements;  // in the hooks library's own data, filled by relocations
  StatusAtEnd status_at_end;
  void (*objects_loaded)() = nullptr;  // called when their calls have been replaced; perhaps under the loader's lock
  const TableEntry* table_entries = nullptr;
  std::uint32_t table_entry_count = 0;
};

// Returns the table, or null where this library cannot serve the process (it has then said why).
using HooksAttach = const HookTable* (*)(const HostServices*);
using SimAttach = bool (*)(const HostServices*);
// Called with torch's extension module right after it was made, with the GIL, before Python goes on with it.
using SimModuleCreated = void (*)(void* py_module);

// A stretch of the program in which it allows or expects findings: a `with devsan.allow(…)` or `devsan.expect(…)`. A
// thread's scopes are a chain, the innermost first. Scopes are used again but never freed, since another thread may be
// reading the chain of one that waits for it.
struct FindingScope {
  std::atomic<trace::KindSet> kinds;
  std::atomic<bool> expects;
  std::atomic<bool> open;               // false: left, perhaps by another thread than the one whose chain it is in
  std::atomic<std::uint32_t> findings;  // that it has silenced
  std::atomic<FindingScope*> outer;
};

// Per-thread memory of the hooks. It lies in libdevsan.so because only a library that is there at start-up has static
// TLS for sure. `epoch` starts as a value that no process ever has, so that a new thread, like a fork child, differs
// from Recorder::epoch_page() at its first operator.
struct alignas(64) ThreadBlock {
  std::uint64_t epoch = ~std::uint64_t{0};
  unsigned char often[128] = {};   // with `epoch`, what every operator needs: two cache lines
  FindingScope* scopes = nullptr;  // written by libdevsan.so, on this thread only
  unsigned char seldom[112] = {};
};
static_assert(sizeof(ThreadBlock) == 256);

}  // namespace devsan
