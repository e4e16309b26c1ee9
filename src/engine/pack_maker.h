// Makes packing tables and masks of a matrix's columns, where the engines of its kind compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// Takes the columns of some packs, and makes the packs of them. It is not an engine and answers
// nothing, so it keeps only the data that packs are made of.
class PackMaker {
 public:
  virtual ~PackMaker() = default;

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another, all of them columns of the bucket with the `bucket`-th public polynomials. Each
  // column is set at most once; a column that is not set is zero. Any number of threads may set
  // different columns at the same time. Throws ResourceError.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket = 0) = 0;

  // Called once, after the last set_columns() and before the first make(). Throws ResourceError if
  // memory is short, or if the columns that arrived where the maker computes differ from those that
  // were set.
  virtual void seal() = 0;

  // Makes the table and the mask (coefficients modulo the packing modulus) of the columns from 1024
  // * pack on. If there are fewer than 1024, the missing ones count as zero. The words are those
  // that PackingTableBuilder makes of HintPolynomials (host/cpu/packing), for every maker. Any
  // number of threads may make different packs at the same time. Throws ResourceError.
  virtual void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) = 0;
};

}  // namespace blindfuse
