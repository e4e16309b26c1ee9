#include "cuda/pipelines/product_blame.h"

#include <string>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

[[noreturn]] void blame_weighing(Scanner& scanner, const std::string& why) {
  const std::string name(Scanner::kWeighing);
  scanner.record().note_failed(name, CheckStage::kProduct, why);
  throw DeviceLostError("the GPU's " + name + " is wrong: " + why +
                        "; the responses of this batch are withheld");
}

// True where that cannot be told for lack of memory: the kernel is not to go on for that.
bool is_as_computed(const CheckVector& check) {
  try {
    return check.is_as_computed();
  } catch (const DeviceLostError&) {
    throw;
  } catch (const ResourceError&) {
    return true;
  }
}

}  // namespace

void blame_products(Scanner& scanner, Scanner::Kernel kernel, const WrongProducts& wrong) {
  const std::string batch = std::to_string(wrong.wrong_count) + " of " +
                            std::to_string(wrong.query_count) +
                            (wrong.query_count == 1 ? " query" : " queries") +
                            " of a batch, first query " + std::to_string(wrong.query);
  const CheckVector& check = *scanner.check_vector();
  if (!is_as_computed(check)) {
    blame_weighing(scanner, "what products are checked with has changed in the device's memory");
  }
  const std::span<const uint32_t> weights = check.host_weights();
  uint32_t sum = 0;
  for (size_t c = 0; c < weights.size(); ++c) sum += weights[c] * wrong.products[c];
  if (sum == wrong.sum) {
    blame_weighing(scanner, "it found wrong products in " + batch + ", which are right");
  }
  scanner.blame(kernel, CheckStage::kProduct, wrong.query_count,
                "the products of " + batch + ", are not those of its words");
}

}  // namespace blindfuse
