#include "host/cpu/packing/response_packer.h"

#include <algorithm>
#include <vector>

#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {

void ResponsePacker::pack(PackingTable table, std::span<const Task> tasks) const {
  sum_groups(table, tasks, 0, kPointGroups);
  for (const Task& task : tasks) finish(task);
}

void ResponsePacker::sum_groups(PackingTable table, std::span<const Task> tasks, size_t first,
                                size_t last) const {
  std::vector<const uint32_t*> keys;
  for (const Task& task : tasks) keys.push_back(task.keys);
  std::vector<uint32_t> sums(tasks.size() * kPointsTogether);
  for (size_t group = first; group < last; ++group) {
    const size_t point = group * kPointsTogether;
    kernel_.sum_group(
        {table.data() + table_place(group, 0, 0), keys.data(), tasks.size(), point, sums.data()});
    for (size_t i = 0; i < tasks.size(); ++i) {
      std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(i * kPointsTogether), kPointsTogether,
                  tasks[i].body.begin() + static_cast<std::ptrdiff_t>(point));
    }
  }
}

void ResponsePacker::finish(const Task& task) const {
  invariant(task.words.size() <= kPackColumns, "a pack has at most 1024 columns");
  const ring::PrimeField& field = ntt_->field();
  ntt_->inverse(task.body);
  for (size_t c = 0; c < ring::kDimension; ++c) {
    const uint32_t word = c < task.words.size() ? ring::switch_to_q(task.words[c]) : 0;
    task.body[c] = field.subtract(word, task.body[c]);
  }
}

}  // namespace blindfuse
