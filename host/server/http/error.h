// The refusal of a request, in HTTP's own terms.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace blindfuse::http {

class Error : public std::exception {
 public:
  // `status` is HTTP's, 400 or more; `detail` one sentence for the client; `headers` go with the
  // response.
  Error(int status, std::string detail,
        std::vector<std::pair<std::string, std::string>> headers = {})
      : status_(status), detail_(std::move(detail)), headers_(std::move(headers)) {}

  int status() const { return status_; }
  const char* what() const noexcept override { return detail_.c_str(); }
  const std::vector<std::pair<std::string, std::string>>& headers() const { return headers_; }

 private:
  int status_;
  std::string detail_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

}  // namespace blindfuse::http
