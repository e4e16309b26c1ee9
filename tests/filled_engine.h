// An engine by name, with a matrix that a test has already.
#pragma once

#include <memory>
#include <string_view>

#include "host/cpu/scan/matrix.h"
#include "host/engines/engine_factory.h"

namespace blindfuse::support {

inline std::unique_ptr<Engine> filled_engine(std::string_view name, const Matrix& matrix,
                                             unsigned thread_count) {
  auto engine = make_engine(name, matrix.row_count(), matrix.column_count(), thread_count);
  engine->set_columns(0, matrix.columns(0, matrix.column_count()));
  engine->seal();
  return engine;
}

}  // namespace blindfuse::support
