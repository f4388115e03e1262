// Where the variables lie that every operator reads: side by side, since each cache line that the program's own work
// has pushed out has to be waited for.
#pragma once

#define DEVSAN_OFTEN_READ __attribute__((section("devsan_often_read")))
