/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: hundreds of half-closed peers that are watched from the same moment on, with far too
 * short a completion queue, do not hold the loop, and a later reset of each is noticed all the same. Method: a carrier
 * on the real kernel with a ring of 8 and 64, driven turn by turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"
#include "base/time.h"
#include "io/conn.h"
#include "io/sleep.h"
#include "ring/carrier.h"

#define PEERS 300u
static struct carrier carrier;

static struct handling {
    int fd, peer;
    int slept, written;
} handlings[PEERS];

static void run_handler(void *argument)
{
    struct handling *handling = argument;
    struct conn conn;
    conn_open(&conn, handling->fd);
    conn_bind(&conn, fiber_current());
    handling->written = conn_write_start(&conn, SLICE("hundreds of these fill the queue"));
    handling->slept = sleep_for(60 * NS_PER_S);
    conn_bind(&conn, NULL);
    if (handling->written == 0) {
        handling->written = conn_write_settle(&conn, 0);
    }
    conn_close(&conn);
}

/* connect_pair - the server's end and the client's, whose close is a reset. */
static void connect_pair(int listener, int pair[2])
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    struct linger reset = {.l_onoff = 1};
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair[1], (struct sockaddr *)&address, length), 0);
    pair[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(pair[0] >= 0);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
}

/* When all that is through, the resets. */
static void run_peers(void *unused)
{
    (void)unused;
    must(sleep_for(200 * NS_PER_MS) == 0);
    for (unsigned i = 0; i < PEERS; i++) {
        close(handlings[i].peer);
    }
}

static void test_watching_hundreds_of_half_closed_peers_held_the_loop_for_ever(void **state)
{
    (void)state;
    struct carrier_setup setup = {.stack_bytes = 65536,
                                  .ring = {.sq_entries = 8, .cq_entries = 64, .buffers = 64}};
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    assert_int_equal(carrier_init(&carrier, &setup), 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(listener, 16), 0);
    for (unsigned i = 0; i < PEERS; i++) {
        int pair[2];
        connect_pair(listener, pair);
        assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
        handlings[i] = (struct handling){.fd = pair[0], .peer = pair[1]};
        assert_non_null(fiber_spawn(&carrier.sched, (struct fiber_name){.prefix = "handler"},
                                    run_handler, &handlings[i]));
    }
    assert_non_null(
        fiber_spawn(&carrier.sched, (struct fiber_name){.prefix = "peers"}, run_peers, NULL));
    carrier_stop(&carrier); /* when the last fiber has ended */
    alarm(20);              /* ends a loop that is held, and with it the test */
    while (!carrier_done(&carrier)) {
        carrier_turn(&carrier);
    }
    alarm(0);
    close(listener);
    assert_true(carrier.ring.overflows > 0); /* or this has shown nothing */
    for (unsigned i = 0; i < PEERS; i++) {
        assert_int_equal(handlings[i].slept, -ECANCELED);
        assert_int_equal(handlings[i].written, 0);
    }
    while (carrier.event_op != NULL) { /* all that may be left */
        struct ring_event event;
        op_cancel(&carrier.ops, carrier.event_op);
        ring_enter(&carrier.ring, UINT64_MAX);
        while (ring_reap(&carrier.ring, &event, 1) == 1) {
            ops_dispatch(&carrier.ops, &event);
        }
    }
    carrier_fini(&carrier);
    carrier_free(&carrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watching_hundreds_of_half_closed_peers_held_the_loop_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
