#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# switch_matrix.sh assembly|swapcontext|aarch64 ... - the fiber layer and its tests with gcc and clang, without
# optimisation, as shipped, and at -O3 with optimisation at link time, on our assembly, on swapcontext, and on
# aarch64's assembly under qemu. Called by make switch-matrix.
#
# Each cell builds base/ and fiber/ alone into a directory of its own below build/, and runs the tests below. What
# a compiler may do to code around a switch it does in one of these: keep values in registers, merge and inline
# across files, remember addresses of thread-locals. A compiler, linker or library that is not there is said, and
# its cell left out. AARCH64_ROOT=DIR: where Debian's libcmocka0:arm64 and libcmocka-dev:arm64 were unpacked, if
# they are not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

make=${MAKE:-make}
tests='switch switch_values fiber overflow sync'
switch='' archiver=ar ldflags='' extra=() probe_flags=()
failed=0
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf 'int main(void) { return 0; }\n' >"$probe/probe.c"

leave_out() { # leave_out CELL WHY
    echo "switch-matrix: $1 left out: $2"
}

cell() { # cell NAME COMPILER CFLAGS...; the variables above say the rest
    local name=$1 compiler=$2 started=$SECONDS
    shift 2
    # shellcheck disable=SC2086
    "$compiler" "$@" "$probe/probe.c" $ldflags ${probe_flags[@]+"${probe_flags[@]}"} -o "$probe/probe" \
        >"$probe/log" 2>&1 || {
        leave_out "$name" "$(head -n1 "$probe/log" | sed 's,^/[^ ]*/,,')"
        return 0
    }
    mkdir -p build/matrix
    # Warnings are judged where the tree is built as usual: at link time gcc sees functions that are larger by inlining.
    if "$make" -s CI= WERROR= FLAVOUR="matrix/$name" LAYERS='base fiber' CC="$compiler" AR="$archiver" SWITCH="$switch" \
        CFLAGS="$* -g" LDFLAGS="$ldflags" TESTS="$tests" ${extra[@]+"${extra[@]}"} test-unit \
        >"build/matrix/$name.log" 2>&1; then
        printf 'switch-matrix: %-22s %s tests in %s programs, %2d s\n' "$name" \
            "$(grep -c '^\[       OK' "build/matrix/$name.log")" "$(wc -w <<<"$tests")" $((SECONDS - started))
    else
        tail -n40 "build/matrix/$name.log" >&2
        echo "switch-matrix: $name failed, see build/matrix/$name.log" >&2
        failed=1
    fi
}

both_compilers() { # both_compilers SUFFIX
    local switch=$switch archiver=gcc-ar ldflags=''
    cell "gcc-O0$1" gcc -O0
    cell "gcc-O2$1" gcc -O2
    cell "gcc-O3-lto$1" gcc -O3 -flto
    archiver='ar'
    cell "clang-O0$1" clang -O0
    cell "clang-O2$1" clang -O2
    ldflags=-fuse-ld=lld # which reads bitcode from any archive
    cell "clang-O3-lto$1" clang -O3 -flto
}

# What measures memory or must die measures qemu there. The libraries are asked for by name: pkg-config tells the host's.
aarch64() {
    local tests='switch switch_values sync' archiver=aarch64-linux-gnu-gcc-ar ldflags='' wrapper root=${AARCH64_ROOT:-}
    local need
    for need in aarch64-linux-gnu-gcc qemu-aarch64; do
        command -v "$need" >/dev/null || {
            leave_out aarch64 "no $need (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
            return 0
        }
    done
    wrapper='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    local libraries=/usr/lib/aarch64-linux-gnu
    [[ -z $root ]] || libraries=$root$libraries
    ldflags="-L$libraries -Wl,-rpath-link,$libraries"
    wrapper+=" -E LD_LIBRARY_PATH=$libraries"
    local extra=(CPPFLAGS="${root:+-I$root/usr/include}" deps_cflags= deps_libs= cmocka_cflags=
        cmocka_libs=-lcmocka test_wrapper="$wrapper") probe_flags=(-lcmocka)
    cell aarch64-O0 aarch64-linux-gnu-gcc -O0
    cell aarch64-O2 aarch64-linux-gnu-gcc -O2
    cell aarch64-O3-lto aarch64-linux-gnu-gcc -O3 -flto
}

for kind in "$@"; do
    case $kind in
        assembly) both_compilers '' ;;
        swapcontext) switch=ucontext both_compilers -ucontext ;;
        aarch64) aarch64 ;;
        *) echo "usage: $0 assembly|swapcontext|aarch64 ..." >&2; exit 2 ;;
    esac
done
exit $failed
