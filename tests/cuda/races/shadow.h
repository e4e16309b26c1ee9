// A record of the accesses to the shared memory of a block and to the global memory of a grid,
// which tells accesses that race.
//
// Two accesses race if they overlap, at least one writes, not both are atomic, and no order
// (order.h) lies between. Of a block all is told. Between blocks nothing has an order: there, what
// one writes no other may touch, unless all do it by atomic operations.
//
// Order does not depend on which thread the host runs first, so neither does what is found, as long
// as the places that a kernel touches do not depend on values that race. What is on its way
// (asynchronous copies, products) touches memory at any time from its beginning to the wait for it.
// It is checked at both, which finds all that has no order with one of them; all else that meets it
// comes after its beginning and before its end in every run, and is found by a mark on the memory.
//
// Memory is looked at in words of 4 bytes. Of a word, its bytes are told apart in a block; two
// blocks that write different bytes of one word are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/races/order.h"

namespace blindfuse::races {

enum class Fault {
  kUnordered,        // two threads of a block
  kAcrossBlocks,     // two blocks
  kCopyInFlight,     // somebody and a copy that was not waited for
  kProductInFlight,  // somebody and a product that was not waited for
  kUnpublished,      // a product that reads what no fence of proxies has published
  kRegisters,        // a product's registers, without a fence before or a wait after
  kUnwatched,        // memory that the kernel was not given
  kHang              // threads wait for others that do not come
};
struct Race {
  Fault fault;
  std::string text;
};
std::string name_of(Fault fault);

struct Range {
  const void* begin;
  size_t bytes;
};

enum class Kind : uint8_t { kRead, kWrite, kAtomic };

class Shadow {
 public:
  using Report = std::function<void(Fault, std::string)>;

  // thread_count: of a block; numbers from there on are of agents (order.h), which write through
  // the asynchronous proxy, so that no fence is needed between them and products.
  Shadow(Range shared, std::span<const Range> global, uint32_t thread_count, Report report);
  ~Shadow();

  bool is_watched(const void* place) const { return find(place) != nullptr; }
  // The next block's accesses: nothing is known of the shared memory, which is another one's.
  void begin_block(uint32_t block, Order& order);

  // Accesses of one thread, or of a whole warp, for which its first lane stands.
  void access(uint32_t thread, Kind kind, const void* place, size_t bytes, bool of_warp = false);

  // A copy, or a product, that reads or writes: from its beginning, which is an access, too, to its
  // end, which is another. Nothing else may meanwhile touch what it writes, or write what it reads.
  void begin_copy(uint32_t thread, Kind kind, const void* place, size_t bytes);
  void end_copy(uint32_t thread, Kind kind, const void* place, size_t bytes);
  // Of shared memory, by a warp, through the asynchronous proxy.
  void begin_product(uint32_t thread, const void* place, size_t bytes);
  void end_product(uint32_t thread, const void* place, size_t bytes);

 private:
  struct Node {
    Moment moment;
    uint32_t block;
    uint32_t next;
    Kind kind;
    uint8_t bytes;  // a bit each
    bool of_warp;
  };
  struct Cell {
    uint32_t stamp;
    uint32_t head;
    uint16_t written_by_copies;
    uint16_t read_by_copies;
    uint16_t read_by_products;
  };
  struct Area {
    const uint8_t* begin;
    size_t bytes;
    bool is_shared;
    size_t number;
    Cell* cells;                     // zeros at first
    std::vector<Moment> last_write;  // of shared memory's words
    std::vector<uint8_t> written;
  };

  const Area* find(const void* place) const;
  Area* find(const void* place);
  template <class F>
  void for_words(const void* place, size_t bytes, const F& f);
  void touch(Area& area, size_t word, uint8_t mask, uint32_t thread, Kind kind, bool of_warp);
  bool is_ordered(const Node& node, uint32_t thread, bool of_warp) const;
  void bring_up_to_date(Area& area, Cell& cell);
  void report(Fault fault, const Area& area, size_t word, const std::string& what) const;

  Report report_;
  uint32_t thread_count_;
  std::vector<Area> areas_;  // the shared one first
  std::vector<Node> nodes_;  // the first is none
  uint32_t free_ = 0;
  uint32_t block_ = 0;
  uint32_t stamp_ = 0;
  uint32_t stamped_phase_ = 0;
  Order* order_ = nullptr;
};

}  // namespace blindfuse::races
