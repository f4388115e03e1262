// Where the variables lie that every operator reads, and the functions that it runs: side by side, since each cache
// line and each page that the program's own work has pushed out has to be waited for.
#pragma once

// The linker puts what is `hot` together, from whatever source.
#define DEVSAN_OFTEN_RUN [[gnu::hot]]

#define DEVSAN_OFTEN_READ __attribute__((section("devsan_often_read")))
