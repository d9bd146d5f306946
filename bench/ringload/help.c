/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c - what --help prints. The man page docs/ringload.1 says more.
 */
#include "ringload/options.h"

static const char help[] =
    "Usage: ringload [OPTION]... http://HOST[:PORT][/PATH] | tcp://HOST:PORT\n"
    "       ringload --fibers N [--sleep TIME] [--carriers N] [--json]\n"
    "\n"
    "Makes load: every virtual user is a fiber. Counts take k and m (20k, 1m), durations\n"
    "us, ms, s, m and h (250ms; plain numbers are seconds).\n"
    "\n"
    "How much\n"
    "  -n, --requests N       requests in all (200, or as many as fit into -d)\n"
    "  -c, --connections N    connections, each of which waits for its answer (50)\n"
    "  -d, --duration TIME    start requests for so long, then wait for the last answers\n"
    "  -R, --rate N           start N requests a second in all, whatever the server does;\n"
    "                         times count from the intended start\n"
    "      --users N          N users with one request each, all at the same time, or as\n"
    "                         many of them as descriptors, or -c, allow\n"
    "      --carriers N       threads with a ring each (one a processor)\n"
    "      --sources N        client addresses 127.x.y.z, for targets in 127.0.0.0/8 (as\n"
    "                         many as the connections' ports need)\n"
    "      --burst            begin all connections in one breath; else as fast as the server's\n"
    "                         queue of 4096 (net.core.somaxconn) takes them\n"
    "What\n"
    "      --keepalive        many requests a connection: the default, and see below\n"
    "      --no-keepalive     a new connection for each request\n"
    "      --connect-only     connect and close, no request\n"
    "      --hold             connect, keep the connections for -d (10s), tell how many live\n"
    "      --greeter          tcp only: send nothing, read until the server closes; with -b\n"
    "                         it must be these bytes\n"
    "  -m, --method METHOD    GET, or POST with a body\n"
    "  -H, --header 'N: V'    a header field, in the place of ours if it has that name\n"
    "  -b, --body TEXT        a body; tcp: the bytes to be echoed (Hello, World)\n"
    "      --body-file FILE   the same from a file\n"
    "  -t, --timeout TIME     of one request, its connect included (30s)\n"
    "No network\n"
    "      --fibers N         N fibers that only sleep: when they were started, what each\n"
    "                         holds, how late the first and the last woke\n"
    "      --sleep TIME       how long (5s)\n"
    "What to tell\n"
    "      --json             one JSON object in the place of text\n"
    "  -q, --quiet            no progress line\n"
    "      --expect-latency TIME  the server's delay, for the arithmetic in the first and\n"
    "                         last line; known for /blocking/N, /remote/N, /wait-blocking\n"
    "                         and /wait-async\n"
    "      --expect-threads N the server serves so many requests at a time\n"
    "      --fail-if COND     exit 99 when COND holds; may be given often. METRIC, one of\n"
    "                         > < >= <=, VALUE: 'p99>3.1s' (p50 to p99.999, avg, min,\n"
    "                         max), 'rps<500', 'errors>0', 'errors>=0.1%'\n"
    "      --help, --version\n"
    "\n"
    "Connections are kept alive unless --no-keepalive is given. Redirects are not followed.\n"
    "\n"
    "Exit status: 0 all was answered with 2xx, 1 a request failed, 2 bad usage, 99 a\n"
    "condition of --fail-if holds. Ctrl-C ends the run and prints what was done.\n";

const char *options_help(void)
{
    return help;
}
