cmake_minimum_required(VERSION 3.25)
# Writes devsan_version.h: the version, and an id of the sources that `devsan build` compiles. Run at build time, with
# -DROOT=<source tree> -DVERSION=<x.y.z> -DOUT=<header> -DFILES=<paths relative to ROOT>.
set(digests "")
foreach(file IN LISTS FILES)
  file(SHA256 "${ROOT}/${file}" digest)
  string(APPEND digests "${file} ${digest}\n")
endforeach()
string(SHA256 id "${digests}")
string(SUBSTRING "${id}" 0 16 id)
file(CONFIGURE OUTPUT "${OUT}" CONTENT
"#pragma once
#define DEVSAN_VERSION \"${VERSION}\"
#define DEVSAN_SOURCE_ID \"${id}\"
")
