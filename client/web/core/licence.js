// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0
//
// Compiled by Emscripten, from C++. This file and blindfuse_core.wasm also hold parts of Emscripten (MIT licence or
// University of Illinois/NCSA Open Source License), musl (MIT licence), LLVM (Apache-2.0 WITH LLVM-exception) and JSON for
// Modern C++ (MIT licence).
