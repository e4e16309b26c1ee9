#include "host/ingest/input_error.h"

#include "src/base/errors.h"

namespace blindfuse {

void fail_input(std::string_view name, std::string_view problem) {
  // A name is not cut: the operator typed it, and it tells the inputs apart.
  throw InputError(printable(name, std::string_view::npos) + ": " + std::string(problem));
}

void fail_input(const InputPlace& place, std::string_view problem) {
  fail_input(
      std::string(place.name) + ", " + std::string(place.unit) + ' ' + std::to_string(place.number),
      problem);
}

}  // namespace blindfuse
