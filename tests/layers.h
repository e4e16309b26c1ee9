// The table of layers (cmake/layers.txt), as the tests read it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace blindfuse::support {

struct Layer {
  std::string place;                   // a folder, or a file
  std::vector<std::string> uses;       // layers, or single headers of them
  std::vector<std::string> libraries;  // from outside

  bool operator==(const Layer&) const = default;
};

// Whether the file is this one, or lies in this folder.
inline bool lies_in(const std::string& file, const std::string& place) {
  return file == place || file.starts_with(place + "/");
}

class Layers {
 public:
  explicit Layers(std::istream& text) {
    for (std::string line; std::getline(text, line);) {
      if (line.empty() || line.front() == '#') continue;
      std::istringstream columns(line);
      std::string place, uses, libraries;
      if (!std::getline(columns, place, '|') || !std::getline(columns, uses, '|')) {
        throw std::runtime_error("not a layer: " + line);
      }
      std::getline(columns, libraries);
      all_.push_back({words_of(place).at(0), words_of(uses), words_of(libraries)});
    }
  }
  static Layers of_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    return Layers(file);
  }

  const std::vector<Layer>& all() const { return all_; }

  // The layer of a file: the innermost folder counts. None for files that belong to no layer.
  const Layer* of(const std::string& file) const {
    const Layer* found = nullptr;
    for (const Layer& layer : all_) {
      if (!lies_in(file, layer.place)) continue;
      if (found == nullptr || layer.place.size() > found->place.size()) found = &layer;
    }
    return found;
  }

  // Its number in the table.
  std::optional<size_t> number_of(const std::string& file) const {
    const Layer* layer = of(file);
    if (layer == nullptr) return std::nullopt;
    return static_cast<size_t>(layer - all_.data());
  }

 private:
  static std::vector<std::string> words_of(const std::string& text) {
    std::istringstream words(text);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    return all;
  }

  std::vector<Layer> all_;
};

}  // namespace blindfuse::support
