// Reads out of the arguments of a call, and out of what the driver says afterwards, what the call did.
#pragma once

#include <cstdint>
#include <optional>

#include "preload/cuda_driver.h"
#include "preload/cuda_journal.h"
#include "preload/cuda_streams.h"

namespace devsan::cuda {

// One call on its way, between the program and the library. Used by one thread.
class Watched {
 public:
  // Before it is made. `words` are its arguments as far as they are passed in registers, `stack` those behind them
  // (null where there are none); both have to outlive this object.
  Watched(Journal& journal, CallId id, const std::uint64_t* words, const std::uint64_t* stack) noexcept;
  // When it came back.
  void finish(std::uint32_t result) noexcept;

 private:
  std::uint64_t word(int index) const noexcept;
  std::uint64_t stored(int index) const noexcept;  // what the call has stored through a pointer among its arguments
  StreamArgument stream() const noexcept;
  void find_stream() noexcept;
  bool takes_part_in_capture() const noexcept;

  void take_out_of_ledger() noexcept;
  void put_back_into_ledger() noexcept;
  void read_result() noexcept;
  std::uint64_t bytes_of_result() const noexcept;
  void read_struct_copy() noexcept;
  void read_direction(std::uint64_t source) noexcept;
  void note_pageable(bool from_host, std::uint64_t source, bool to_host) noexcept;
  void read_copy() noexcept;
  void find_space() noexcept;
  int find_device() const noexcept;
  int device_of_call() const noexcept;
  void keep_books() noexcept;
  void keep_streams() noexcept;
  void keep_captures() noexcept;
  void unmap() noexcept;

  Journal& journal_;
  const Call& call_;
  const Arguments& arguments_;
  const std::uint64_t* words_;
  const std::uint64_t* stack_;
  std::int64_t begun_ns_ = 0;
  std::optional<Block> taken_;  // out of the ledger, before its memory was freed
  StreamName on_;               // the stream that the call names or destroys, or the device of the event it destroys
  Current now_;                 // when it came back
  Observation seen_;
};

}  // namespace devsan::cuda
