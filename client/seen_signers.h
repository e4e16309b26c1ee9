// What a client remembers of the manifests of one server: who signed them, and the newest of each
// signer. Kept next to the hints, shared by all clients of one user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace blindfuse {

struct SeenManifest {
  uint64_t sequence = 0;
  uint64_t time = 0;    // seconds since 1970 UTC
  std::string content;  // SHA-256 of what was signed, in hex

  bool operator==(const SeenManifest&) const = default;
};

struct SeenSigners {
  // The public key, in hex, that signed the first manifest, or that was asked for last; empty:
  // none.
  std::string signer;
  std::map<std::string, SeenManifest> newest;  // by public key

  // Takes what is newer in `other`, and its signer where there is none here.
  void merge(const SeenSigners& other);

  bool operator==(const SeenSigners&) const = default;
};

// As JSON.
std::string serialize_seen_signers(const SeenSigners& seen);
// InputError when it is not what serialize_seen_signers() writes.
SeenSigners parse_seen_signers(std::string_view text);

class SeenSignersFile {
 public:
  static constexpr const char* kName = "signers.json";

  // `folder` is that of the server's hints, and exists.
  explicit SeenSignersFile(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // What is there; nothing seen when there is no file. CacheError when it is damaged; InputError or
  // ResourceError when it cannot be read.
  SeenSigners read() const;

  // Reads it, lets `change` alter it, and writes it, durably and atomically, if that changed
  // anything. Clients take turns, so that none loses what another has written. Throws what read()
  // and `change` do, and then writes nothing; ResourceError when it cannot be written.
  void update(const std::function<void(SeenSigners&)>& change) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace blindfuse
