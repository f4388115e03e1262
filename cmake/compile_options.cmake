# Two interface targets: what every target is compiled with, and what the programs that run outside a user's process
# are compiled with besides. The injected libraries never carry a sanitizer: they live in processes that have none.
add_library(devsan_warnings INTERFACE)
target_compile_options(
  devsan_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align -Wconversion
                            -Wno-sign-conversion $<$<BOOL:${DEVSAN_WERROR}>:-Werror>)

add_library(devsan_sanitized INTERFACE)
target_link_libraries(devsan_sanitized INTERFACE devsan_warnings)
if(DEVSAN_SANITIZE)
  target_compile_options(devsan_sanitized INTERFACE -fsanitize=${DEVSAN_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(devsan_sanitized INTERFACE -fsanitize=${DEVSAN_SANITIZE})
endif()
