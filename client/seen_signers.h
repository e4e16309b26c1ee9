// A client's record of the manifests of one server: their signers, and the newest manifest of each.
// It lies next to the hints, and all clients of one user share it.
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
  // The public key, in hex, that signed the first manifest, or that was asked for last. Empty:
  // none.
  std::string signer;
  std::map<std::string, SeenManifest> newest;  // by public key

  // Takes the newer entries of `other`, and its signer if there is none here.
  void merge(const SeenSigners& other);

  bool operator==(const SeenSigners&) const = default;
};

// As JSON.
std::string serialize_seen_signers(const SeenSigners& seen);
// Throws InputError if the text is not one of serialize_seen_signers().
SeenSigners parse_seen_signers(std::string_view text);

class SeenSignersFile {
 public:
  static constexpr const char* kName = "signers.json";

  // `folder` is that of the server's hints, and exists.
  explicit SeenSignersFile(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The content of the file; empty if there is no file. Throws CacheError if it is damaged, and
  // InputError or ResourceError if it cannot be read.
  SeenSigners read() const;

  // Reads the file, lets `change` alter its content, and writes it, durably and atomically, if
  // anything changed. Clients take turns, so that none loses an entry that another has written.
  // Throws the errors of read() and of `change`, and then writes nothing. Throws ResourceError if
  // it cannot be written.
  void update(const std::function<void(SeenSigners&)>& change) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace blindfuse
