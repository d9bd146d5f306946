#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# systemd_guest.sh - install ringspun on this machine and see systemd handle it. For test_systemd.py, which runs it as
# root on a machine of its own: it installs, changes kernel settings and stops services.
#
# Each step is a function of the same name; it runs in a subshell and ends at the first command that fails. Prints
# "step NAME ok" or "step NAME failed", with all that the step wrote in front of it.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export LC_ALL=C.UTF-8 SYSTEMD_PAGER='' SYSTEMD_COLORS=0
unit_dir=/usr/local/lib/systemd/system

fetch() { curl -sS --noproxy '*' --max-time 60 "$@"; }
property() { systemctl show -P "$2" "$1"; }
journal() { journalctl -q -b --no-pager -o cat -u "$1" "${@:2}"; }
says() { grep -E -m1 -- "$1" <<<"$2" || { echo "does not say $1: $2"; return 1; }; }

# afresh - as after the installation, whatever the step before left behind.
afresh() {
    systemctl stop ringspun.socket ringspun.service ringspun@8081.service
    systemctl reset-failed 'ringspun*'
    rm -rf /etc/ringspun /run/systemd/system/ringspun.service.d
}

fails() { ! "$@"; } # `!` alone is no failure to set -e

# wait_for SECONDS COMMAND... - until it succeeds.
wait_for() {
    local until=$((SECONDS + $1))
    while ! "${@:2}"; do
        ((SECONDS < until)) || { echo "not within $1 s: ${*:2}"; return 1; }
        sleep 0.3
    done
}

install() {
    # Built elsewhere for an older C library, it runs here; else it is built here.
    build/ringspun --version || make -s all
    make -s -o all install
    [[ -x /usr/local/bin/ringspun && -f $unit_dir/ringspun@.service && -f /usr/local/share/man/man8/ringspun.8 ]]
}

verify() {
    local said
    said=$(systemd-analyze verify --man=no "$unit_dir"/ringspun.service "$unit_dir"/ringspun.socket ringspun@8081.service 2>&1)
    [[ -z $said ]] || { echo "$said"; return 1; }
}

sysctl_settings() {
    /usr/lib/systemd/systemd-sysctl /usr/local/lib/sysctl.d/90-ringspun.conf
    sysctl net.core.somaxconn net.ipv4.tcp_max_syn_backlog net.ipv4.ip_local_port_range vm.max_map_count
    [[ $(sysctl -n net.core.somaxconn) == 65535 ]]
    [[ $(sysctl -n net.ipv4.ip_local_port_range | tr '\t' ' ') == '16384 65535' ]]
}

start() {
    systemctl start ringspun
    systemctl status --no-pager ringspun | head -n 12
    [[ $(property ringspun ActiveState) == active ]]
    [[ $(property ringspun StatusText) =~ ^'8080 http, 8085 remote; '[0-9]+' carrier' ]]
    says 'Fiber\[#[0-9]+,http-8080-conn-[0-9]+\]' "$(fetch localhost:8080/currentThread)"
    says '^Hello, delayed by 0.1 seconds.$' "$(fetch localhost:8080/blocking/0.1)"
    [[ $(stat -c %u "/proc/$(property ringspun MainPID)") != 0 ]]
    says ' 65535 ' "$(ss -Hltn 'sport = :8080')" # the whole queue that it asked for
}

guard_fallback() {
    local release
    release=$(uname -r)
    [[ $(printf '%s\n' 6.13 "$release" | sort -V | head -n1) == 6.13 ]] && { echo "Linux $release has guard markers"; return; }
    says 'Linux [0-9.]+|mprotect|max_map_count' "$(journal ringspun | grep max_map_count)"
}

security() {
    local unit
    for unit in ringspun.service ringspun@8081.service; do
        systemd-analyze security --no-pager --threshold=15 "$unit" >/tmp/security || { cat /tmp/security; return 1; }
        says 'Overall exposure' "$(cat /tmp/security)"
        grep '✗' /tmp/security || true
    done
}

doctor() {
    build/ringspun --help | grep -q '^  ringspun doctor' || { echo 'not in this build'; return; }
    local status=0
    ringspun doctor || status=$?
    ((status <= 1))
}

instance() {
    echo 'REMOTE_URL=http://localhost:8085' >/etc/default/ringspun # a name: the resolver works in the sandbox
    systemctl start ringspun@8081
    rm /etc/default/ringspun
    says 'http-8081-conn-' "$(fetch localhost:8081/currentThread)"
    says '^Hello, delayed by 0 seconds.$' "$(fetch localhost:8081/blocking/0)" # the remote of ringspun.service
    systemctl stop ringspun@8081
    [[ $(property ringspun@8081 Result) == success ]]
    says 'http-8080-conn-' "$(fetch localhost:8080/currentThread)"
}

stop_with_requests_in_flight() {
    afresh
    systemctl start ringspun
    local asking
    fetch -Z --parallel-immediate -w '%{http_code}\n' -o '/tmp/answer.#1' 'localhost:8080/blocking/15?[1-10]' >/tmp/statuses &
    asking=$!
    wait_for 14 eval '(($(ss -Hnt state established "sport = :8085" | wc -l) >= 10))' # all have reached the remote
    systemctl stop ringspun
    wait $asking
    [[ $(grep -c '^200$' /tmp/statuses) == 10 ]]
    [[ $(cat /tmp/answer.* | grep -o 'Hello, delayed by 15 seconds.' | wc -l) == 10 ]]
    echo '10 of 10 answered'
    [[ $(property ringspun Result) == success && $(property ringspun ActiveState) == inactive ]]
    says 'Graceful shutdown complete' "$(journal ringspun | tail -n 50)"
}

socket_restart_under_load() {
    afresh
    systemctl start ringspun.socket
    [[ $(property ringspun ActiveState) == inactive ]]
    says 'http-8080-conn-' "$(fetch localhost:8080/currentThread)" # started by this
    says 'on a socket passed by the service manager' "$(journal ringspun)"
    local load restarts=0 first
    first=$(property ringspun MainPID)
    ab -q -n 1500 -c 20 http://127.0.0.1:8080/blocking/40ms >/tmp/ab 2>&1 &
    load=$!
    while kill -0 $load 2>/dev/null && ((restarts < 3)); do
        sleep 1.5
        kill -0 $load 2>/dev/null || break
        systemctl restart ringspun
        restarts=$((restarts + 1))
    done
    wait $load || { cat /tmp/ab; return 1; }
    echo "$restarts restarts"
    grep -E 'Complete|Failed|Non-2xx' /tmp/ab
    ((restarts >= 2))
    [[ $(property ringspun MainPID) != "$first" ]]
    says 'Complete requests: +1500$' "$(cat /tmp/ab)" >/dev/null
    says 'Failed requests: +0$' "$(cat /tmp/ab)" >/dev/null
    fails grep 'Non-2xx' /tmp/ab
    systemctl stop ringspun.socket ringspun.service
}

passed_socket_that_fits_nothing() {
    afresh
    mkdir /etc/ringspun
    echo '{"server.port": 8090}' >/etc/ringspun/application.json
    systemctl start ringspun.socket
    fails systemctl start ringspun
    [[ $(property ringspun ExecMainStatus) == 78 && $(property ringspun NRestarts) == 0 ]]
    says 'port 8080\) fits no server here' "$(journal ringspun | tail -n 50)"
    systemctl stop ringspun.socket
    systemctl reset-failed ringspun
    systemctl start ringspun # without the socket the file is right
    says 'http-8090-conn-' "$(fetch localhost:8090/currentThread)"
    systemctl stop ringspun
}

bad_configuration_is_not_tried_again() {
    afresh
    mkdir /etc/ringspun
    echo '{"server.prot": 8090}' >/etc/ringspun/application.json
    fails systemctl start ringspun
    [[ $(property ringspun ExecMainStatus) == 78 && $(property ringspun NRestarts) == 0 ]]
    says 'server.port' "$(journal ringspun | tail -n 50)"
}

stuck_carrier_is_restarted() {
    afresh
    mkdir -p /run/systemd/system/ringspun.service.d
    printf '[Service]\nWatchdogSec=5s\nEnvironment=RINGSPUN_DEBUG_STUCK_CARRIER_AFTER=4s\n' \
        >/run/systemd/system/ringspun.service.d/stuck.conf
    systemctl daemon-reload
    systemctl start ringspun
    wait_for 90 eval '[[ $(property ringspun NRestarts) -ge 1 ]]'
    rm -r /run/systemd/system/ringspun.service.d
    systemctl daemon-reload
    journal ringspun | grep -E 'held from now on|Watchdog timeout|stuck-on-purpose|code=(killed|dumped)|Scheduled restart' |
        head -n 8 | tee /tmp/stuck
    says 'Watchdog timeout' "$(cat /tmp/stuck)" >/dev/null
    systemctl restart ringspun
    says 'http-8080-conn-' "$(fetch localhost:8080/currentThread)"
}

uninstall() {
    afresh
    make -s uninstall
    [[ -z $(find /usr/local -name '*ringspun*') ]]
    fails systemctl cat ringspun
}

# Sourced by the shell of a step: nothing more.
[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0

status=0
steps=(install verify sysctl_settings start guard_fallback security doctor instance stop_with_requests_in_flight
    socket_restart_under_load passed_socket_that_fits_nothing bad_configuration_is_not_tried_again
    stuck_carrier_is_restarted uninstall)
(($# > 0)) || set -- "${steps[@]}"
for step; do
    began=$SECONDS
    # A new shell: `set -e` has no effect in a function that is part of a condition.
    if timeout -k 5 240 bash -euo pipefail -c "source $(printf '%q' "${BASH_SOURCE[0]}"); $step" </dev/null 2>&1
    then
        echo "step $step ok, $((SECONDS - began)) s"
    else
        echo "step $step failed"
        status=1
    fi
done
exit $status
