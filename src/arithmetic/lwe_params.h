// The parameter sets: plain LWE, or ring LWE, with q = 2^32. Secrets are uniform on {-1, 0, 1}.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace blindfuse {

// A word's scale: a plaintext byte sits in the top 8 of its 32 bits (q / p = 2^24).
inline constexpr uint32_t kPlaintextShift = 24;

// The way in which the secret's share is removed from a response.
enum class Mode {
  kHint,    // the hint, which clients hold
  kPacked,  // the server, by packing responses under the secret itself: clients hold masks
};

// "hint" or "packed", as in the manifest.
std::string_view mode_name(Mode mode);

struct LweParams {
  std::string_view name;        // identity in the manifest
  uint32_t dimension;           // n; of the ring, where mode is kPacked
  Mode mode;                    // the mode that it is for
  uint32_t error_max;           // errors of queries are uniform on -error_max..error_max: 1 or 4
  std::string_view assumption;  // secrecy rests on it
  uint32_t security_bits;       // by the lattice estimator (docs/security/estimate.json)
  std::string_view source;      // the paper that proposes n
};

// All sets, the default of the mode kHint first.
std::span<const LweParams> lwe_params();

// The first set for a mode.
const LweParams& default_lwe_params(Mode mode);

// The set of this name, or nullptr.
const LweParams* find_lwe_params(std::string_view name);

// Rows of a database, which are the columns of the public matrix, come in panels.
inline constexpr uint32_t kPanelRows = 64;

}  // namespace blindfuse
