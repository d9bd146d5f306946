#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The layer check must be able to fail: a made-up tree that keeps every rule passes, and then breaks each of them in
# turn. Called by `make layers`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{src,obj}/{base,fiber,ring,io,http,app} "$tree/bench"

put() { # put FILE LINE...: a source file, and its object above ring/
    printf '%s\n' "${@:2}" >"$tree/src/$1"
    case $1 in
        io/*.c | http/*.c | app/*.c | main.c) ${CC:-cc} -O1 -w -I"$tree/src" -c "$tree/src/$1" -o "$tree/obj/${1%c}o" ;;
    esac
}

expect() { # expect pass|PATTERN
    local said status=0
    said=$("$here/layers.sh" "$tree/src" "$tree/obj" "$tree/bench" 2>&1) || status=$?
    if [[ $1 == pass ]]; then
        ((status == 0)) && return
    else
        ((status == 1)) && grep -q -E -e "$1" <<<"$said" && return
    fi
    echo "layers_test: wanted '$1', got exit $status and: $said" >&2
    exit 1
}

breaks() { # breaks PATTERN FILE LINE...: only this file is wrong, and is put right again
    local before
    before=$(cat "$tree/src/$2" 2>/dev/null || true)
    put "${@:2}"
    expect "$1"
    if [[ -n $before ]]; then put "$2" "$before"; else rm -f "$tree/src/$2"; fi
}

put base/log.h '/* nothing */'
put fiber/fiber.h '#include "base/log.h"'
put fiber/switch.c '#include <ucontext.h>'
put ring/sys.h '#include "fiber/fiber.h"'
put ring/ring.c '#include <liburing.h>'
put io/conn.h '#include "ring/sys.h"'
put io/conn.c '#include "io/conn.h"' 'long sys_read(int fd); long conn_read(int fd) { return sys_read(fd); }'
put http/parser.h '#include "base/log.h"'
put http/session.c '#include "parser.h"' 'int session;'
put http/client.h '#include "io/conn.h"'
put app/routes.c '#include "http/parser.h"' 'int routes;'
put main.c '#include "base/log.h"' 'int main(void) { return 0; }'
expect pass

breaks 'base/log.h:1: base includes "fiber/fiber.h", to its right' base/log.h '#include "fiber/fiber.h"'
breaks 'http/parser.h:2: .*only service, session and client' http/parser.h '' '#include "io/conn.h"'
breaks 'base/log.h:1: includes <ucontext.h>' base/log.h '#include <ucontext.h>'
breaks 'fiber/fiber.h:1: includes <liburing.h>' fiber/fiber.h '  #  include <liburing.h> /* x */'
breaks 'http/parser.h:1: includes <llhttp.h>' http/parser.h '#include <llhttp.h>'
breaks 'main.h:1: includes <cjson/cJSON.h>' main.h '#include <cjson/cJSON.h>'
breaks 'io/conn.h:1: includes "extra/x.h", which is in no layer' io/conn.h '#include "extra/x.h"'
breaks 'io/conn.o: calls read itself' io/conn.c '#include <unistd.h>' 'long f(void *b) { return read(0, b, 9); }'
breaks 'app/routes.o: calls __recv_chk itself' app/routes.c \
    'long __recv_chk(int, void *, long, long, int); long f(void *b) { return __recv_chk(0, b, 9, 9, 0); }'
breaks 'main.o: calls nanosleep itself' main.c '#include <time.h>' 'int main(void) { return nanosleep(0, 0); }'

echo '#include "app/config.h"' >"$tree/bench/load.c"
expect 'bench/load.c:1: bench/ includes app/'
rm "$tree/bench/load.c"
put app/config.c 'int config;'
for file in app/config.h app/routes.h; do
    printf '#include <cjson/cJSON.h>\n' >"$tree/src/$file"
done
expect 'a second file includes <cjson/cJSON.h>'
rm "$tree"/src/app/*.h
expect pass
echo "layers_test: 12 breaches are seen"
