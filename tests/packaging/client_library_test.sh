#!/usr/bin/env bash
# What `cmake --install` gives is enough to build the example against, and the example looks things up. What the library
# shows is its public headers' classes, and nothing else.
#
#   client_library_test.sh CMAKE BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
cmake=$1 build=$2 source=$3
folder=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cd "$folder"

"$cmake" --install "$build" --component client-library --prefix "$folder/prefix" >install.log
# Away from the tree: nothing of it may be needed.
cp -r "$source/client/example" example
"$cmake" -S example -B example-build -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_FLAGS='-Wall -Wextra -Wpedantic -Werror' >configure.log ||
  { cat configure.log; fail 'the example is not configured'; }
"$cmake" --build example-build >build.log || { cat build.log; fail 'the example is not built'; }

# Every header stands by itself.
for header in prefix/include/blindfuse/*.h; do
  echo "#include <blindfuse/$(basename "$header")>" | ${CXX:-c++} -std=c++20 -Iprefix/include -fsyntax-only -x c++ - ||
    fail "$header needs something else"
done

library=$(find prefix -name 'libblindfuse-client.so')
foreign=$(nm -DC --defined-only "$library" | sed -E 's/^[0-9a-f]* *. //; s/^(vtable|typeinfo name|typeinfo) for //' |
  grep -Ev '^blindfuse::(Client|InputError|ResourceError|ConnectionError|ProtocolError|SignatureError|ServerError|EpochGoneError|ServerBusyError|NotAskedError|CacheError|CancelledError)\b' |
  grep -E 'blindfuse|nlohmann' || true)
[ -z "$foreign" ] || fail "the library shows what no public header has:
$foreign"

printf 'owl\tnight bird\nlark\tmorning bird\n' >birds.tsv
"$build/bin/blindfuse" build birds.tsv --output birds.blindfuse >server.log 2>&1
setpriv --pdeathsig KILL "$build/bin/blindfuse" serve birds.blindfuse --listen 127.0.0.1:0 --ready-file url >>server.log 2>&1 &
for _ in $(seq 300); do [ -s url ] && break; sleep 0.1; done
[ -s url ] || { cat server.log; fail 'the server did not start'; }
export XDG_CACHE_HOME=$folder/cache
is=$(example-build/lookup "$(cat url)" owl lark dodo 2>lookup.err) || { cat lookup.err; fail 'the example does not run'; }
[ "$is" = 'owl: night bird
lark: morning bird
dodo: (not there)' ] || fail "the example printed: $is"
grep -q '^2 keys, ' lookup.err || fail "the example said: $(cat lookup.err)"
status=0; example-build/lookup http://127.0.0.1:9 owl 2>lookup.err || status=$?
[ $status = 1 ] && grep -q '^no server: cannot connect' lookup.err || fail "without a server: $status $(cat lookup.err)"

# Another minor version is another library, as long as the major one is 0.
[ -n "$(find prefix -name libblindfuse-client.so.0.3)" ] ||
  fail "the library is not named after version 0.3: $(find prefix -name '*.so*')"
for other in 0.2 0.4; do
  sed "s/blindfuse 0.3 REQUIRED/blindfuse $other REQUIRED/" "$source/client/example/CMakeLists.txt" >example/CMakeLists.txt
  ! "$cmake" -S example -B "refused-$other" -DCMAKE_PREFIX_PATH="$folder/prefix" >refused.log 2>&1 ||
    fail "version $other was found"
  grep -q 'compatible with requested version' refused.log || fail "version $other was not looked for: $(cat refused.log)"
done
# The licence comes with the library.
for file in LICENSE NOTICE; do
  cmp "$source/$file" "prefix/share/licenses/blindfuse/$file" || fail "the installed library lacks $file"
done
echo 'PASS'
