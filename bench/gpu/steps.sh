# Steps of bench/gpu/run, which includes this: each in a process of its own that ends in time, with a file of its own
# and a line in summary.txt the moment it has ended.
# shellcheck shell=bash disable=SC2034,SC2154
#
# The script that includes this sets: out, a folder that is there; budget, the seconds that all may take; stop_at, the
# second at which no step goes on. It reads failed, which becomes 1 with the first step that is not ok.

reserve=20  # seconds of the budget that are kept for the last look at the device and for results.tgz
failed=0
child=
sampler=

# Prints a step's result: NAME, RESULT, SECONDS and the figures that matter.
say() { # NAME RESULT SECONDS [TEXT]
  printf '%-20s %-8s %5s  %s\n' "$1" "$2" "$3" "${4:-}" >>"$out/summary.txt"
  printf '%-20s %-8s %5s  %s\n' "$1" "$2" "$3" "${4:-}"
}

left_out() { say "$1" left-out 0 "$2"; }

# A line of a file, short enough for the summary. The figures of four shapes have up to 550 characters.
clipped() { head -c 600 | tr -d '\r' | tr '\t' ' '; }

# The figures of a step's output: the last line "figure: ..." of our own programs; what the self-test, GoogleTest or the
# sanitizer counted.
figure_of() { # FILE
  local line passed broken all
  line=$(grep -a '^figure: ' "$1" | tail -n 1 | clipped)
  if [ -n "$line" ]; then
    echo "${line#figure: }"
    return
  fi
  line=$(grep -a -E '^========= ([A-Z]+ )?SUMMARY: ' "$1" | tail -n 1 | clipped)
  if [ -n "$line" ]; then
    echo "${line#========= }"
    return
  fi
  all=$(grep -a -c '^ *"outcome": "' "$1")
  if [ "$all" -gt 0 ]; then
    echo "$(grep -a -c '^ *"outcome": "passed"' "$1") of $all checks passed"
    return
  fi
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*/\1/p' "$1" | tail -n 1)
  [ -n "$passed" ] || return 0
  broken=$(sed -n 's/^\[  FAILED  \] \([A-Za-z].*\)/\1/p' "$1" | sed 's/ (.*//' | sort -u | tr '\n' ' ' | clipped)
  echo "$passed tests passed${broken:+; failed: $broken}"
}

# The last output of a step's program.
last_words() { # FILE
  grep -a -v '^[[:space:]]*$' "$1" | tail -n 1 | clipped
}

# Why a step failed, as far as its program said so.
why_failed() { # FILE
  local why
  why=$(figure_of "$1")
  [ -n "$why" ] || why=$(last_words "$1")
  echo "${why:-it said nothing}"
}

# Runs a command for LIMIT seconds at most, and no longer than there is time. Its output goes to FOLDER/NAME.txt.
# Nothing waits for its descendants: a process that not even SIGKILL ends, which happens with a driver that hangs, is
# left behind.
# Returns 0; or 1 when it has failed; or 2 when it did not begin, or was stopped sooner than after LIMIT seconds.
step() { # NAME LIMIT COMMAND...
  local name=$1 limit=$2 left code=0 began=$SECONDS figure log status=1
  shift 2
  log=$out/$name.txt
  left=$((stop_at - reserve - SECONDS))
  if [ "$left" -lt 5 ]; then
    left_out "$name" 'no time left'
    return 2
  fi
  if [ "$left" -lt "$limit" ]; then
    limit=$left
    status=2
  fi
  printf '%s: %s\n' "$name" "$*" >"$out/running.txt"
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" || code=$?
  child=
  rm -f "$out/running.txt"
  figure=$(figure_of "$log")
  # A filter that fits no test is a success for GoogleTest.
  if [ "$code" = 0 ] && grep -a -q '^\[==========\] 0 tests from' "$log"; then
    code=none
    figure='no test has this name'
  fi
  # A process that was killed by something else ends in the same way.
  if [ "$code" = 137 ] && [ $((SECONDS - began)) -lt "$limit" ]; then code='137 (killed)'; fi
  case $code in
    0)
      say "$name" ok $((SECONDS - began)) "$figure"
      return 0
      ;;
    124 | 137)
      say "$name" stopped $((SECONDS - began)) "after $limit s${figure:+; until then: $figure}"
      failed=1
      return "$status"
      ;;
    none) say "$name" FAILED $((SECONDS - began)) "$figure" ;;
    *) say "$name" FAILED $((SECONDS - began)) "exit status $code; $(why_failed "$log")" ;;
  esac
  failed=1
  return 1
}

# Ends what runs, and says what it was.
cut_off() {
  say run cut-off "$SECONDS" "during $(cat "$out/running.txt" 2>/dev/null)"
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
  stop_sampler
  exit 143
}

# Puts all output into one file, for a machine from which only a few files come back. Databases and caches would make
# it large; their sources are the same every time.
pack_up() {
  local status=0
  : >"$out/results.tgz" # there before tar reads the folder, which would otherwise have changed meanwhile
  timeout --kill-after=5 10 tar -czf "$out/results.tgz" -C "$out" --exclude=./results.tgz \
    --exclude='./serve-*/database*' --exclude='./serve-*/cache*' --exclude='./serve-*/*.tsv' . || status=$?
  # 1: a process that was left running has written to a file meanwhile.
  [ "$status" -gt 1 ] || return 0
  rm -f "$out/results.tgz"
  printf 'run: results.tgz could not be made\n' >&2
}

# Clocks, power, what throttles them and PCIe, every 500 ms, in samples.csv.
start_sampler() {
  local reasons fields
  # The second is what drivers before 535 call it.
  for reasons in clocks_event_reasons.active clocks_throttle_reasons.active; do
    fields=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used
    fields+=,$reasons,pcie.link.gen.current,pcie.link.width.current
    if timeout --kill-after=2 10 nvidia-smi --query-gpu="$fields" --format=csv \
      >"$out/sampler.txt" 2>&1 </dev/null; then
      timeout --kill-after=5 "$budget" nvidia-smi --query-gpu="$fields" --format=csv --loop-ms=500 \
        >"$out/samples.csv" 2>&1 </dev/null &
      sampler=$!
      return 0
    fi
  done
  left_out sampler "nvidia-smi does not say: $(last_words "$out/sampler.txt")"
}

stop_sampler() {
  [ -n "$sampler" ] || return 0
  kill -TERM "$sampler" 2>/dev/null
  sampler=
  say sampler ok "$SECONDS" "$(wc -l <"$out/samples.csv") lines in samples.csv"
}
