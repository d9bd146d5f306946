#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# layers.sh SOURCE-DIR OBJECT-DIR [BENCH-DIR] - may every file include what it includes, and call what it calls?
#
# A file of src/ includes its own layer and those to its left in base < fiber < ring < io < http < app < main;
# inside http/ only service, session and client include io/. A foreign header has one door. What lies above ring/
# makes no system call of its own: its objects must not ask for any of libc's wrappers, since ring/sys*.c is the one
# door to them and tests put a scripted kernel in its place. bench/ does without app/. Prints file:line, or object and
# symbol, of each breach; exit 1.
set -euo pipefail

src=${1:?source directory}
obj=${2:?object directory}
bench=${3:-}
status=0

breach() {
    echo "layers: $*" >&2
    status=1
}

# ---------------------------------------------------------------- who includes whom

includes=$(find "$src" -name '*.[chS]' | LC_ALL=C sort | xargs -r awk -v skip="$((${#src} + 2))" '
    match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/) {
        name = substr($0, RSTART, RLENGTH)
        sub(/^[^"<]*/, "", name)
        print substr(FILENAME, skip), FNR, name
    }')

breaches=$(awk '
    BEGIN {
        count = split("base fiber ring io http app main", order, " ")
        for (i = 1; i <= count; i++) {
            rank[order[i]] = i
        }
        door["<ucontext.h>"] = "^fiber/";           door["<sys/ucontext.h>"] = "^fiber/"
        door["<liburing.h>"] = "^ring/";            door["<linux/io_uring.h>"] = "^ring/"
        door["<llhttp.h>"] = "^http/parser_llhttp[.]h$";   door["<cjson/cJSON.h>"] = "^app/"
    }
    {
        file = $1; at = $1 ":" $2; name = $3
        layer = file ~ /\// ? substr(file, 1, index(file, "/") - 1) : "main"
        if (!(layer in rank)) {
            print at ": " layer "/ is no layer"
            next
        }
        if (name in door && file !~ door[name]) {
            print at ": includes " name ", whose door is " door[name]
        }
        if (name == "<cjson/cJSON.h>") {
            cjson[file] = at
        }
        if (name !~ /^"/) {
            next
        }
        gsub(/"/, "", name)
        if (name !~ /\//) {
            target = layer # a neighbour
        } else {
            target = substr(name, 1, index(name, "/") - 1)
        }
        if (!(target in rank)) {
            print at ": includes \"" name "\", which is in no layer"
        } else if (rank[target] > rank[layer]) {
            print at ": " layer " includes \"" name "\", to its right"
        } else if (layer == "http" && target == "io" && file !~ /^http\/(service|session|client)(_[a-z_]+)?[.][ch]$/) {
            print at ": includes \"" name "\"; in http/ only service, session and client may include io/"
        }
    }
    END {
        for (file in cjson) {
            if (seen++) {
                print cjson[file] ": a second file includes <cjson/cJSON.h>"
            }
        }
    }' <<<"$includes")
if [[ -n $breaches ]]; then
    while read -r line; do
        breach "$line"
    done <<<"$breaches"
fi

if [[ -n $bench ]]; then
    while IFS=: read -r file line _; do
        breach "$file:$line: bench/ includes app/"
    done < <(grep -rn --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"app/' "$bench" || true)
fi

# ---------------------------------------------------------------- who calls the kernel

# libc's wrappers of system calls, with the names that _FORTIFY_SOURCE and large files give them; sleep, clocks,
# signals, memory maps and randomness are the kernel's too. Not so pthread's threads and locks, which a simulated
# kernel need not replace, nor stdio's output.
calls='
    socket socketpair bind listen accept accept4 connect shutdown setsockopt getsockopt getsockname getpeername
    recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg read readv pread preadv write writev pwrite pwritev
    sendfile splice open openat creat close dup dup2 dup3 pipe pipe2 fcntl ioctl stat fstat lstat fstatat statx access
    unlink rename mkdir opendir readdir fopen fdopen freopen poll ppoll select pselect epoll_create epoll_create1
    epoll_ctl epoll_wait epoll_pwait eventfd eventfd_read eventfd_write timerfd_create timerfd_settime signalfd
    inotify_init fork vfork clone execve execv execvp posix_spawn system popen wait waitpid waitid
    clock_gettime clock_nanosleep nanosleep usleep sleep gettimeofday time alarm setitimer timer_create
    getrandom getentropy random rand srandom srand arc4random
    mmap munmap mremap mprotect madvise mlock mlockall sysconf getrlimit setrlimit prlimit getrusage
    sched_getaffinity sched_setaffinity sched_yield sched_getcpu getcpu getpid gettid getppid
    kill raise tgkill signal sigaction sigprocmask sigaltstack sigwait sigwaitinfo sigtimedwait sigqueue
    getaddrinfo getnameinfo gethostbyname uname gethostname prctl syscall'
pattern="^_*($(tr -s ' \n' '|' <<<"$calls" | sed 's/^|//; s/|$//'))(64|_chk|64_chk|_2|64_2)?$"

# Only objects that still have their source: a build directory may hold older ones.
objects=$(find "$obj/io" "$obj/http" "$obj/app" "$obj/main.o" -name '*.o' 2>/dev/null | LC_ALL=C sort |
    while read -r object; do
        source=${object#"$obj"/}
        [[ -e $src/${source%o}c ]] && echo "$object"
    done || true)
if [[ -z $objects ]]; then
    breach "$obj: no objects above ring/, so nothing to check: build first"
else
    while read -r object symbol; do
        breach "${object%:}: calls $symbol itself, and not through ring/sys.h"
    done < <(xargs nm -A -u --format=posix <<<"$objects" | awk -v p="$pattern" '{ sub(/@.*/, "", $2) } $2 ~ p { print $1, $2 }')
fi

((status == 0)) && echo "layers: $(wc -l <<<"$includes") includes and $(wc -w <<<"$objects") objects above ring/ are in order"
exit "$status"
