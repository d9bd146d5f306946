#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dependencies.sh build|test|check|bench - see to it that what a make target needs is on this machine.
#
# The Makefile calls it before it compiles (build) and before it tests. What is there already costs a look
# and prints nothing; each thing that has to be done is said in one line. What the distribution has is
# installed by its own package manager (with sudo, where this does not run as root). Debian 12 has no llhttp
# and an old liburing: those come from the next Debian release, unpacked below build/deps, and the system's
# apt sources stay as they are. Where neither way serves, one line names what is missing, and the exit is 2.
# Nothing here compiles anything, and only the package manager writes outside build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-}
here=$PWD
deps=build/deps
liburing_min=2.9
llhttp_min=9.2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
container="a container serves: docker compose up"
export LC_ALL=C
export PKG_CONFIG_PATH=$deps/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

say() { echo "dependencies: $*"; }
fail() { say "$*" >&2; exit 2; }
is_there() { command -v "$1" >/dev/null 2>&1; }
pc() { "${PKG_CONFIG:-pkg-config}" --exists "$@" 2>/dev/null; }
cause() { grep -m1 -E '^(E:|[Ee]rror)' "$1" || tail -n1 "$1"; } # a package manager's log in one line

# What a mode needs. Optional things are installed where the distribution has them, and else done without.
case $mode in
    build) required=(compiler pkg-config liburing llhttp cjson) optional=() ;;
    test)  required=(cmocka pytest ab curl) optional=(hey wrk slowhttptest) ;;
    check) required=(clang-tidy clang-format libfuzzer patch) optional=(valgrind) ;;
    bench) required=(python3 curl ab) optional=(hey wrk gnuplot boost-context) ;;
    *) echo "usage: $0 build|test|check|bench" >&2; exit 2 ;;
esac

have() { # is it there, and new enough?
    case $1 in
        compiler)      echo '#include <stdio.h>' | ${CC:-cc} -E - >/dev/null 2>&1 ;;
        pkg-config)    is_there "${PKG_CONFIG:-pkg-config}" ;;
        liburing)      pc "liburing >= $liburing_min" ;;
        llhttp)        pc "libllhttp >= $llhttp_min" ;;
        cjson)         pc libcjson ;;
        cmocka)        pc cmocka ;;
        pytest)        # the Makefile looks in the same two places
                       local find='import importlib.util as u; exit(u.find_spec("pytest") is None)'
                       /usr/bin/python3 -c "$find" 2>/dev/null || python3 -c "$find" 2>/dev/null ;;
        libfuzzer)     echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
                           clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null >/dev/null 2>&1 ;;
        boost-context) [[ -e /usr/include/boost/context/fiber.hpp ]] ;;
        *)             is_there "$1" ;;
    esac
}

package() { # package THING apt|dnf|pacman: what it is called there
    case $1:$2 in
        compiler:apt)            echo gcc libc6-dev ;;
        compiler:dnf)            echo gcc glibc-devel ;;
        compiler:pacman)         echo gcc ;;
        pkg-config:dnf)          echo pkgconf-pkg-config ;;
        pkg-config:pacman)       echo pkgconf ;;
        liburing:apt)            echo liburing-dev ;;
        liburing:dnf)            echo liburing-devel ;;
        llhttp:apt)              echo libllhttp-dev ;;
        llhttp:dnf)              echo llhttp-devel ;;
        cjson:apt)               echo libcjson-dev ;;
        cjson:dnf)               echo cjson-devel ;;
        cmocka:apt)              echo libcmocka-dev ;;
        cmocka:dnf)              echo libcmocka-devel ;;
        pytest:apt | pytest:dnf) echo python3-pytest ;;
        pytest:pacman)           echo python-pytest ;;
        ab:apt)                  echo apache2-utils ;;
        ab:dnf)                  echo httpd-tools ;;
        ab:pacman)               echo apache ;;
        libfuzzer:apt)           echo clang libclang-rt-dev ;;
        libfuzzer:dnf | libfuzzer:pacman) echo clang compiler-rt ;;
        clang-*:dnf)             echo clang-tools-extra ;;
        clang-*:pacman)          echo clang ;;
        gnuplot:apt)             echo gnuplot-nox ;;
        boost-context:apt)       echo libboost-context-dev ;;
        boost-context:dnf)       echo boost-devel ;;
        boost-context:pacman)    echo boost ;;
        python3:pacman)          echo python ;;
        *)                       echo "$1" ;;
    esac
}

at_least() { # what must be there, for people to read
    case $1 in
        liburing) echo "liburing >= $liburing_min" ;;
        llhttp)   echo "llhttp >= $llhttp_min" ;;
        *)        echo "$1" ;;
    esac
}

# ---------------------------------------------------------------- the package managers

can_be_root() { ((EUID == 0)) || is_there sudo; }

need_root() { # need_root WHAT-FOR
    can_be_root || fail "root is needed (and there is no sudo here) to install $*"
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt_update() {
    say "reading the package lists (apt-get update)"
    as_root apt-get update -qq >"$deps/log" 2>&1 </dev/null || fail "apt-get update failed: $(cause "$deps/log")"
}

install() { # install PACKAGE...; the cause of a failure is left in build/deps/log
    local command
    case $manager in
        apt)    command=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends) ;;
        dnf)    command=(dnf install -y -q) ;;
        pacman) command=(pacman -S --needed --noconfirm) ;;
    esac
    say "installing $* ($manager)"
    as_root "${command[@]}" "$@" >"$deps/log" 2>&1 </dev/null && return
    # Package lists older than the mirror name files that it no longer has.
    [[ $manager == apt ]] && apt_update && as_root "${command[@]}" "$@" >"$deps/log" 2>&1 </dev/null
}

apt_candidate() { # the version that apt would install, or nothing
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

available() { # available THING: does the package manager have it, new enough?
    local name version min=0
    [[ $manager == apt ]] || return 0 # tried, and looked at afterwards
    case $1 in
        liburing) min=$liburing_min ;;
        llhttp)   min=$llhttp_min ;;
    esac
    for name in $(package "$1" apt); do
        version=$(apt_candidate "$name")
        [[ -n $version ]] && dpkg --compare-versions "$version" ge "$min" || return 1
    done
}

# ---------------------------------------------------------------- Debian 12: from the next release

# apt with one source, and with lists and archives of its own. The system's configuration is read as well, so
# that its proxies, certificates and credentials stay in force; what must not follow it stands on the command
# line, which apt reads last.
private_apt() {
    APT_CONFIG=$here/$deps/apt/apt.conf apt-get -q -o "APT::Default-Release=$next" \
        -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false "$@"
}

# The archive that this machine takes Debian's own packages from. Their origin and label are known once apt has
# read its lists; before that the release's name must do.
debian_archive() {
    apt-get indextargets 'Identifier: Packages' \
        --format '$(ORIGIN)/$(LABEL) $(COMPONENT) $(CODENAME) $(RELEASE) $(REPO_URI)' |
        awk -v release="$VERSION_CODENAME" '
            $2 != "main" || $NF ~ /^cdrom:/ { next }
            $1 == "Debian/Debian" && $3 == release { found = $NF; exit }
            $(NF - 1) == release && guess == "" { guess = $NF }
            END { print found ? found : guess }'
}

unpack_next_release() { # unpack_next_release PACKAGE...
    local archive signed='' apt=$here/$deps/apt log=$deps/apt/log root=$deps/root pcdir=$deps/pkgconfig
    archive=$(debian_archive)
    [[ -n $archive ]] || fail "apt names no archive of Debian $VERSION_CODENAME here to take $* from; $container"
    [[ ! -e $keyring ]] || signed="signed-by=$keyring "

    rm -rf "$apt" "$root.new" "$pcdir.new"
    mkdir -p "$apt"/{lists/partial,cache/archives/partial,parts,deb} "$root.new" "$pcdir.new"
    echo "deb [${signed}arch=$(dpkg --print-architecture) target=Packages] $archive $next main" >"$apt/sources.list"
    {
        [[ -z ${APT_CONFIG:-} ]] || echo "#include \"$APT_CONFIG\";"
        echo "Dir::State::Lists \"$apt/lists\";"
        echo "Dir::Cache \"$apt/cache\";"
        echo "Dir::Etc::SourceList \"$apt/sources.list\";"
        echo "Dir::Etc::SourceParts \"$apt/parts\";"
        echo "APT::Sandbox::User \"root\";" # apt's own user may not reach a home directory
    } >"$apt/apt.conf"

    private_apt update --error-on=any >"$log" 2>&1 || {
        grep -q -E 'NO_PUBKEY|EXPKEYSIG|not signed|GPG error' "$log" &&
            fail "Debian $next's signature cannot be checked: apt-get install debian-archive-keyring, or $container"
        fail "cannot read Debian $next's package list: $(cause "$log"); $container"
    }
    (cd "$apt/deb" && private_apt download "$@") >"$log" 2>&1 ||
        fail "cannot download $* from Debian $next: $(cause "$log"); $container"
    local deb
    for deb in "$apt"/deb/*.deb; do
        dpkg -x "$deb" "$root.new"
    done

    # Debian's own .pc files name shared libraries, which are not installed here; ours name the static archives.
    # The headers go in front of the system's, with the kernel's and the processor's asm/ among them: liburing.h
    # includes some that Debian 12's linux-libc-dev does not have.
    local name lib
    lib=$(cd "$root.new/usr/lib" && echo *-linux-gnu*)
    for name in liburing libllhttp; do
        [[ -e $root.new/usr/lib/$lib/$name.a ]] || continue
        {
            echo "root=\${pcfiledir}/../root/usr"
            echo "Name: $name"
            echo "Description: the static archive of Debian $next"
            grep '^Version:' "$root.new/usr/lib/$lib/pkgconfig/$name.pc"
            echo "Cflags: -isystem \${root}/include -isystem \${root}/include/$lib"
            echo "Libs: \${root}/lib/$lib/$name.a"
        } >"$pcdir.new/$name.pc"
    done
    rm -rf "$root" "$pcdir" "$apt"
    mv "$root.new" "$root"
    mv "$pcdir.new" "$pcdir"
    say "unpacked $* of Debian $next into $root (the system's apt sources are as they were)"
}

# ---------------------------------------------------------------- what is missing, and how to get it

look() { # what is missing, into lacking (required) and wishes (optional)
    local thing
    lacking=() wishes=()
    for thing in ${required[@]+"${required[@]}"}; do
        have "$thing" || lacking+=("$thing")
    done
    for thing in ${optional[@]+"${optional[@]}"}; do
        [[ -e $deps/without-$thing ]] || have "$thing" || wishes+=("$thing")
    done
}

look
((${#lacking[@]} + ${#wishes[@]} > 0)) || exit 0

mkdir -p "$deps"
exec 9>"$deps/lock"
if is_there flock; then
    flock 9 # of two makes in one tree, one does the work
    look
fi

ID='' PRETTY_NAME='this system' VERSION_CODENAME='' next=''
# shellcheck disable=SC1091
[[ -e /etc/os-release ]] && . /etc/os-release
[[ $ID:$VERSION_CODENAME == debian:bookworm ]] && next=trixie
manager=''
for name in apt dnf pacman; do
    is_there "${name/apt/apt-get}" && { manager=$name; break; }
done

packages=() from_next=() nowhere=()
if [[ $manager == apt && ${#lacking[@]} -gt 0 && -z $(apt-cache madison libc6-dev 2>/dev/null) ]]; then
    need_root "${lacking[@]}" # no package list was read here yet
    apt_update
fi
for thing in ${lacking[@]+"${lacking[@]}"}; do
    if [[ -n $manager ]] && available "$thing"; then
        read -ra names <<<"$(package "$thing" "$manager")"
        packages+=("${names[@]}")
    elif [[ -n $next && $thing == liburing ]]; then
        from_next+=(liburing-dev linux-libc-dev)
    elif [[ -n $next && $thing == llhttp ]]; then
        from_next+=(libllhttp-dev)
    else
        nowhere+=("$(at_least "$thing")")
    fi
done
rest=()
for thing in ${wishes[@]+"${wishes[@]}"}; do # with apt, which knows what it has, in the same go
    if [[ $manager == apt ]] && can_be_root && available "$thing"; then
        read -ra names <<<"$(package "$thing" apt)"
        packages+=("${names[@]}")
    else
        rest+=("$thing")
    fi
done
((${#nowhere[@]} == 0)) ||
    fail "$PRETTY_NAME has no package for: $(printf '%s, ' "${nowhere[@]}" | sed 's/, $//'); $container"
if ((${#packages[@]} > 0)); then
    need_root "${packages[*]}"
    install "${packages[@]}" || fail "could not install ${packages[*]}: $(cause "$deps/log"); $container"
fi
if ((${#from_next[@]} > 0)); then
    # All of it anew: what an earlier run unpacked is replaced as a whole.
    [[ ${from_next[*]} == *liburing* || ! -e $deps/pkgconfig/liburing.pc ]] || from_next+=(liburing-dev linux-libc-dev)
    [[ ${from_next[*]} == *llhttp* || ! -e $deps/pkgconfig/libllhttp.pc ]] || from_next+=(libllhttp-dev)
    unpack_next_release "${from_next[@]}"
fi

for thing in ${rest[@]+"${rest[@]}"}; do
    read -ra names <<<"$(package "$thing" "$manager")"
    if [[ -n $manager && $manager != apt ]] && can_be_root && install "${names[@]}" && have "$thing"; then
        continue
    fi
    say "$thing cannot be had here: what uses it is skipped"
    touch "$deps/without-$thing"
done

look
((${#lacking[@]} == 0)) ||
    fail "$PRETTY_NAME has no $(for thing in "${lacking[@]}"; do at_least "$thing"; done | paste -sd ,); $container"
