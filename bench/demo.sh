#!/usr/bin/env bash
# Runs the demo of `make demo`: builds a database of the English dictionary, serves it on this machine, looks up some
# words privately, and stops the server. All files are in build/demo, and the next run uses them again.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=build/bin
work=build/demo
words_tsv=$work/words.tsv
database=$work/words.blindfuse
url_file=$work/server.url
port_file=$work/server.port
server_log=$work/server.log
# The last one is in no dictionary.
words=(serendipity privacy 'hot dog' oblivious blindfuse)

server_pid=
stop_server() {
  [ -n "$server_pid" ] || return 0
  kill -TERM "$server_pid" 2>/dev/null || true
  # SIGTERM lets the server finish what it is answering; nothing here takes ten seconds.
  for _ in {1..100}; do
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$server_pid" 2>/dev/null || true
  wait "$server_pid" 2>/dev/null || true
  server_pid=
}
trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step() { printf '\n%s\n' "$1"; }

# Serves on the given port of loopback (0: any free one) and sets `url` when the server accepts requests.
start_server() {
  rm -f "$url_file"
  "$programs/blindfuse" serve "$database" --listen "127.0.0.1:$1" --ready-file "$url_file" \
    </dev/null >"$server_log" 2>&1 &
  server_pid=$!
  for _ in {1..600}; do
    if [ -s "$url_file" ]; then
      url=$(<"$url_file")
      return
    fi
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  stop_server
  return 1
}

mkdir -p "$work"

step '1. A dictionary: every word of WordNet with its definitions'
if [ ! -s "$words_tsv" ] || [ bench/datasets/wordnet.py -nt "$words_tsv" ]; then
  bench/datasets/wordnet.py --value-bytes 256 >"$words_tsv.new"
  mv "$words_tsv.new" "$words_tsv"
fi
printf '   %s words in %s\n' "$(wc -l <"$words_tsv")" "$words_tsv"

step '2. The operator builds a database for private look-ups'
"$programs/blindfuse" build "$words_tsv" --output "$database"

step '3. The operator serves it'
# The client's cache is by the address of the server, so the port of the last run is tried first.
last_port=0
[ ! -s "$port_file" ] || last_port=$(<"$port_file")
if ! start_server "$last_port" && ! start_server 0; then
  echo 'The server did not start. Its log:' >&2
  cat "$server_log" >&2
  exit 1
fi
echo "${url##*:}" >"$port_file"
printf '   at %s\n' "$url"

step '4. A client downloads what it needs before its first look-up. It is the same for every client.'
"$programs/blindfuse-client" sync "$url" --json --cache "$work/cache" >"$work/sync.json"

# One at a time, as people look things up. The client exits with 3 when a key is not there.
: >"$work/answers.ndjson"
for word in "${words[@]}"; do
  status=0
  "$programs/blindfuse-client" get "$url" --json --cache "$work/cache" -- "$word" \
    >>"$work/answers.ndjson" || status=$?
  [ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
done
"$programs/blindfuse" inspect "$database" --json >"$work/database.json"

python3 - "$work" <<'PYTHON'
import json
import sys
import textwrap


def size(count):
    """Bytes as people read them, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count} bytes" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000


def load(name):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as text:
        return [json.loads(line) for line in text] if name.endswith("ndjson") else json.load(text)


database, sync, answers = load("database.json"), load("sync.json"), load("answers.ndjson")
whole = f"{size(database['matrix_bytes'])} ({database['key_count']:,} keys)"

part = "mask" if database["mode"] == "packed" else "hint"
print(f"   {sync['parts']} {part}{'s' if sync['parts'] != 1 else ''}, {size(sync['hint_bytes'])}; "
      f"downloaded now: {sync['shards_fetched']}, {size(sync['bytes_fetched'])} with the epoch's table, "
      f"{sync['seconds']:.2f} s")
print("\n5. The client looks up words. The server learns neither the words nor whether they are there.")
for answer in answers:
    seconds, wire = answer["seconds"], answer["bytes"]
    text = answer["value"] if answer["found"] else "(not there)"
    print(f"\n   {answer['key']}")
    print(textwrap.fill(text, 92, initial_indent="      ", subsequent_indent="      "))
    print(f"      time     {seconds['total'] * 1000:.1f} ms: making the query {seconds['prepare'] * 1000:.1f}, "
          f"waiting for the server {seconds['server'] * 1000:.1f}, reading the answer {seconds['decode'] * 1000:.1f}")
    print(f"      traffic  {size(wire['query'])} sent, {size(wire['response'])} received; the database: {whole}")
PYTHON

stop_server
step 'Done. The server has stopped. To do the same by hand:'
cat <<TEXT
   $programs/blindfuse serve $database --listen 127.0.0.1:8080
   $programs/blindfuse-client get http://127.0.0.1:8080 --cache $work/cache -- WORD...
TEXT
# Only a server that was built with Emscripten has the page.
if grep -q ' page: ' "$server_log"; then
  echo '   or open the server in a browser: http://127.0.0.1:8080/'
fi
