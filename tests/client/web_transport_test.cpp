// The browser client's transport, compiled here, with a stand-in for the browser's requests.
#include "client/web/core/web_transport.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/database_description.h"
#include "client/hint_download.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"

namespace blindfuse::web {
namespace {

std::function<ExchangeReply(const ExchangeRequest&)> browser;

}  // namespace

ExchangeReply exchange(const ExchangeRequest& request) { return browser(request); }

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class WebTransportTest : public testing::Test {
 protected:
  ~WebTransportTest() override { browser = nullptr; }

  // What the fake server answers, as a browser hands it over.
  ExchangeReply answer(const ExchangeRequest& request) {
    CollectedBody collected;
    ExchangeReply reply;
    const uint64_t first = request.range.empty() ? 0 : std::stoull(request.range.substr(6));
    server_.ignore_ranges = true;
    reply.status = server_
                       .answer({.method = request.method,
                                .path = request.url.substr(std::string("http://test").size()),
                                .first_byte = first,
                                .body = Bytes(request.body.begin(), request.body.end()),
                                .cut_later = true},
                               collected)
                       .status;
    reply.body.assign(collected.text.begin(), collected.text.end());
    if (!request.range.empty()) {
      reply.status = 206;
      reply.content_range = "bytes x/" + std::to_string(reply.body.size());
      reply.body.erase(reply.body.begin(), reply.body.begin() + static_cast<long>(first));
    }
    reply.body_bytes = reply.body.size();
    return reply;
  }

  ScratchFolder scratch_;
  HandClock clock_;
  FakeServer server_{ServedDatabase::with_noise(1, 2, 0)};
  LastExchange last_;
  RemoteDatabase remote_{std::make_unique<WebTransport>(parse_url("http://test"), "", last_),
                         "http://test", seconds(60), clock_.clock()};

  void fetch_hint() {
    const DatabaseDescription database(server_.database.manifest_text(), server_.database.table());
    HintDownload download(scratch_.path(), HintShape(database.layout()));
    const std::vector<MissingHint> missing = {{0, database.epoch_table().hint_hash(0)}};
    download.fetch(remote_, database.epoch(), missing, {});
  }
};

TEST_F(WebTransportTest, ARequestHasTheTimeThatTheCallHasLeft) {
  milliseconds given{};
  browser = [&](const ExchangeRequest& request) {
    given = request.timeout;
    return answer(request);
  };
  const Deadline::Call call(remote_.deadline());
  clock_.advance(milliseconds(59'990));
  remote_.fetch_manifest();
  EXPECT_EQ(given, milliseconds(10));
  clock_.advance(milliseconds(10));
  browser = [](const ExchangeRequest&) -> ExchangeReply {
    ADD_FAILURE() << "the call was over";
    return {};
  };
  EXPECT_THROW(remote_.fetch_manifest(), ConnectionError);
}

TEST_F(WebTransportTest, WhatTookTooLongNamesTheCure) {
  browser = [](const ExchangeRequest&) {
    ExchangeReply reply;
    reply.error = "TimeoutError";
    return reply;
  };
  EXPECT_EQ(message_of<ConnectionError>([&] { remote_.fetch_manifest(); }),
            "the call to http://test was not done in 60 s; allow more with --timeout");
  const Deadline::Call call(remote_.deadline());
  remote_.deadline().allow(uint64_t{1} << 40);
  EXPECT_THAT(message_of<ConnectionError>([&] { remote_.fetch_manifest(); }),
              AllOf(HasSubstr("http://test took longer than 62 s for one of its answers"),
                    HasSubstr("allow more with --timeout")));
}

TEST_F(WebTransportTest, AStatusWithoutABodyIsNamed) {
  browser = [](const ExchangeRequest&) {
    ExchangeReply reply;
    reply.status = 204;
    return reply;
  };
  EXPECT_THAT(message_of<ProtocolError>([&] { remote_.fetch_manifest(); }),
              HasSubstr("with status 204;"));
}

TEST_F(WebTransportTest, ADownloadGoesOnAfterAPieceFoundTheServerBusy) {
  server_.database = ServedDatabase::with_noise(1, 2000, 0);
  int requests = 0;
  browser = [&](const ExchangeRequest& request) {
    ++requests;
    if (requests % 2 == 1) {
      ExchangeReply piece = answer(request);
      piece.body.resize(std::min(piece.body.size(), size_t{2} << 20));
      piece.body_bytes = piece.body.size();
      return piece;
    }
    ExchangeReply busy;
    busy.status = 503;
    busy.retry_after = "0";
    return busy;
  };
  ASSERT_GT(server_.database.layout().hint_part_bytes(), 2u << 20) << "several pieces";
  fetch_hint();
  EXPECT_EQ(requests, 5);  // a piece, busy, a piece, busy, a piece
}

}  // namespace
}  // namespace blindfuse::web
