// Makes packing tables and masks of a matrix's columns, where the engines of its kind compute.
#pragma once

#include <cstdint>
#include <span>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// Takes the columns of some packs, and makes the packs of them. It is not an engine: nothing is
// answered from these columns, so it keeps of them only what packs are made of.
class PackMaker {
 public:
  virtual ~PackMaker() = default;

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another. Each column once; a column that is not set is zero. Different columns by any
  // number of threads at the same time. Throws ResourceError.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes) = 0;

  // Called once, after the last set_columns() and before the first make(). Throws ResourceError
  // when memory is short, or when what has arrived where the maker computes is not what was set.
  virtual void seal() = 0;

  // The table and the mask (coefficients modulo the packing modulus) of columns 2048 * pack and on,
  // as of 2048 where there are fewer, all zero. The words are those that PackingTableBuilder makes
  // of HintPolynomials (host/cpu/packing), whichever maker it is. Different packs by any number of
  // threads at the same time. Throws ResourceError.
  virtual void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) = 0;
};

}  // namespace blindfuse
