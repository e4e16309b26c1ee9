# shellcheck shell=bash
# For the scripts next to it: runs stages one after another, and tells at the end what each took and how it ended.
#
#   stage NAME COMMAND...   runs the command; its time and its result go into the table
#   finish                  prints the table, then "N passed, N failed, N skipped", and exits with 1 if a stage failed
#
# With STAGES_GO_ON=1 the stages after one that failed are run all the same.

stages=()
stages_failed=0
stages_result_folders=()

stages_time() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

stage() {
  local name=$1 began=$SECONDS result=passed
  shift
  if [ "$stages_failed" != 0 ] && [ "${STAGES_GO_ON:-0}" != 1 ]; then
    stages+=("not run|$name|")
    return 0
  fi
  printf '\n== %s\n' "$name"
  "$@" || { result=FAILED stages_failed=$((stages_failed + 1)); }
  stages+=("$result|$name|$(stages_time $((SECONDS - began)))")
  printf '== %s: %s, %s\n' "$name" "$result" "$(stages_time $((SECONDS - began)))"
}

# ctest over the build folder $1. Further arguments are ctest's.
run_tests() {
  local folder=$1
  shift
  # Results of a run before would be counted as this one's.
  rm -rf "$folder/test-results"
  mkdir -p "$folder/test-results"
  stages_result_folders+=("$folder/test-results")
  # One test more than there are processors, since some tests only wait for what hangs.
  ctest --test-dir "$folder" --output-on-failure --output-junit test-results/ctest.xml --parallel $((JOBS + 1)) "$@"
}

finish() {
  printf '\n%-8s  %-52s %s\n' result stage time
  printf '%s\n' "${stages[@]}" | while IFS='|' read -r result name time; do
    printf '%-8s  %-52s %s\n' "$result" "$name" "$time"
  done
  printf '%-8s  %-52s %s\n\n' '' 'in all' "$(stages_time $SECONDS)"
  # A stage that failed is a failure even if each of its tests passed.
  tests/run/count.py --failed-stages "$stages_failed" "${stages_result_folders[@]}"
}
