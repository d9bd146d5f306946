/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a connection gives every byte once and in order however they were cut,
 * never holds more than two buffers, receives again only when it is read, and
 * lives through want of buffers. Method: the scripted kernel, many seeds, in both
 * modes (recv with a total cap, and one piece a recv).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "io/conn.h"
#include "io/sleep.h"
#include "kernel.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define ROUNDS 150
#define BYTES_MAX 60000

static char source[BYTES_MAX];
static struct conn conns[2];

static void fill_source(void)
{
    for (size_t i = 0; i < sizeof(source); i++) {
        source[i] = (char)(i * 131 + (i >> 8));
    }
}

/* ------------------------------------------------------------ a reader that takes its time */

struct reader {
    struct conn *conn;
    char got[BYTES_MAX + 1];
    size_t length;
    ssize_t last;
    size_t at_most; /* stop after so many bytes; 0: read to the end */
    bool hurries;
    bool over;
};

static void run_reader(void *argument)
{
    struct reader *reader = argument;
    struct slice bytes;
    while (reader->at_most == 0 || reader->length < reader->at_most) {
        reader->last = conn_peek(reader->conn, &bytes, 0);
        if (reader->last <= 0) {
            break;
        }
        if (!reader->hurries && kernel_random(4) == 0) {
            (void)sleep_for(kernel_random(3) * NS_PER_MS); /* more may be merged to it meanwhile */
        }
        size_t taken = kernel_random(3) == 0 ? kernel_random(bytes.length + 1) : bytes.length;
        if (reader->length + taken > BYTES_MAX) {
            kernel_violation("more bytes came than were sent");
        }
        memcpy(reader->got + reader->length, bytes.at, taken);
        reader->length += taken;
        conn_consume(reader->conn, taken);
    }
    conn_close(reader->conn);
    reader->over = true;
}

static void start_world(unsigned round)
{
    kernel_start(round);
    kernel_knobs.recv_cap = round % 2 == 0;
    kernel_knobs.chop_percent = (unsigned)kernel_random(100);
    kernel_knobs.late_percent = (unsigned)kernel_random(60);
    kernel_knobs.sq_entries = 1 + (unsigned)kernel_random(64);
}

static void test_every_byte_comes_once_and_in_order(void **state)
{
    (void)state;
    static struct reader reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        start_world(round);
        kernel_knobs.buffers = round % 5 == 0 ? 2 : 64;
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peer));
        reader = (struct reader){.conn = &conns[0], .hurries = round % 3 == 0};
        drive_spawn("reader", run_reader, &reader);
        size_t length = kernel_random(BYTES_MAX), sent = 0;
        while (sent < length) {
            size_t piece = 1 + kernel_random(kernel_random(2) == 0 ? 50 : 9000);
            piece = piece < length - sent ? piece : length - sent;
            sent += (size_t)peer_send(peer, source + sent, piece);
            if (kernel_random(2) == 0) {
                drive_pass(kernel_random(2) * NS_PER_MS);
            }
        }
        peer_finish(peer);
        drive_pass(20 * NS_PER_S);
        assert_true(reader.over);
        assert_int_equal(reader.last, 0);
        assert_int_equal(reader.length, length);
        assert_memory_equal(reader.got, source, length);
        drive_stop();
    }
}

static void run_peek_once(void *argument)
{
    struct reader *reader = argument;
    struct slice bytes;
    reader->last = conn_peek(reader->conn, &bytes, 0);
    reader->over = true;
}

static void run_close(void *argument)
{
    conn_close(argument);
}

static void test_who_does_not_read_holds_two_buffers_at_most(void **state)
{
    (void)state;
    static struct reader reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        size_t sent = 0;
        start_world(round);
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peer));
        reader = (struct reader){.conn = &conns[0]};
        drive_spawn("reader", run_peek_once, &reader);
        while (sent < BYTES_MAX) {
            sent += (size_t)peer_send(peer, source + sent,
                                      1 + kernel_random(kernel_random(2) == 0 ? 9000 : 30) %
                                              (BYTES_MAX - sent));
            drive_run();
            assert_in_range(kernel_buffers_out(), 0, 2);
        }
        assert_true(reader.over);
        assert_null(conns[0].recv_op);
        uint64_t recvs = kernel_count(KERNEL_RECV);

        /* half of what is held consumed: it is not armed while anything is held */
        conn_consume(&conns[0], conns[0].held[0].length / 2);
        drive_pass(NS_PER_S);
        assert_int_equal(kernel_count(KERNEL_RECV), recvs);
        while (conn_has_unread(&conns[0])) {
            conn_consume(&conns[0], conns[0].held[0].length);
        }
        assert_int_equal(kernel_buffers_out(), 0); /* and what is idle holds none */
        drive_pass(NS_PER_S);
        assert_int_equal(kernel_count(KERNEL_RECV), recvs);
        drive_spawn("reader", run_peek_once, &reader);
        drive_run();
        assert_true(kernel_count(KERNEL_RECV) > recvs);
        assert_in_range(kernel_buffers_out(), 1, 2);
        drive_spawn("close", run_close, &conns[0]);
        drive_pass(NS_PER_S);
        drive_stop();
    }
}

static void test_without_a_provided_buffer_it_uses_its_own_and_comes_back(void **state)
{
    (void)state;
    static struct reader hog, reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peers[2];
        start_world(round);
        kernel_knobs.buffers = 1;
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peers[0]));
        conn_open(&conns[1], kernel_pair(&peers[1]));
        hog = (struct reader){.conn = &conns[0]};
        peer_say(peers[0], "x");
        drive_spawn("hog", run_peek_once, &hog);
        drive_run();
        assert_int_equal(kernel_buffers_out(), 1);

        reader = (struct reader){.conn = &conns[1], .hurries = true, .at_most = 3000};
        drive_spawn("reader", run_reader, &reader);
        peer_send(peers[1], source, 3000);
        drive_pass(NS_PER_S);
        assert_true(reader.over);
        assert_int_equal(reader.length, 3000);
        assert_memory_equal(reader.got, source, 3000);

        conn_consume(&conns[0], 1);
        assert_int_equal(kernel_buffers_out(), 0);
        peer_say(peers[0], "yz");
        drive_spawn("hog", run_peek_once, &hog);
        drive_run();
        if (hog.last > 0 && conns[0].held[0].buffer == CONN_OWN_BUFFER) {
            /* its capped recv had gone on into want while the other read */
            conn_consume(&conns[0], (size_t)hog.last);
            peer_say(peers[0], "z");
            drive_spawn("hog", run_peek_once, &hog);
            drive_run();
        }
        assert_int_not_equal(conns[0].held[0].buffer, CONN_OWN_BUFFER);
        assert_int_equal(kernel_buffers_out(), 1);
        drive_spawn("close", run_close, &conns[0]);
        drive_pass(NS_PER_S);
        drive_stop();
    }
}

/* ------------------------------------------------------------ the end of a connection */

static void test_close_with_a_recv_in_flight_sends_a_fin(void **state)
{
    (void)state;
    static struct reader reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        start_world(round);
        drive_start(1);
        int fd = kernel_pair(&peer);
        conn_open(&conns[0], fd);
        reader = (struct reader){.conn = &conns[0], .at_most = 1};
        drive_spawn("reader", run_reader, &reader);
        bool more = kernel_random(2) == 0;
        peer_say(peer, "a");
        drive_run();
        if (more) {
            peer_send(peer, source, kernel_random(100));
        }
        drive_pass(NS_PER_S);
        assert_true(reader.over);
        assert_int_equal(conns[0].fd, -1);
        if (!more) {
            assert_true(peer_got_fin(peer));
            assert_false(peer_got_reset(peer));
        }
        drive_stop();
    }
}

static void test_close_cancels_a_recv_that_a_shutdown_does_not_end(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        static struct reader reader;
        start_world(round);
        kernel_knobs.deaf_shutdown = round % 4 < 2;
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peer));
        reader = (struct reader){.conn = &conns[0]};
        struct fiber *fiber = drive_spawn("reader", run_reader, &reader);
        drive_run();
        fiber_cancel(fiber);
        drive_pass(25 * NS_PER_MS);
        assert_true(reader.over);
        assert_int_equal(reader.last, -ECANCELED);
        drive_stop();
    }
}

static void run_abort(void *argument)
{
    conn_abort(argument);
}

static void test_abort_resets(void **state)
{
    (void)state;
    static struct reader reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        char byte;
        start_world(round);
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peer));
        reader = (struct reader){.conn = &conns[0]};
        peer_say(peer, "some");
        drive_spawn("reader", run_peek_once, &reader);
        drive_run();
        drive_spawn("abort", run_abort, &conns[0]);
        drive_run();
        assert_int_equal(peer_receive(peer, &byte, 1), -ECONNRESET);
        assert_int_equal(conns[0].fd, -1);
        drive_stop();
    }
}

static void run_peek_within_100_ms(void *argument)
{
    struct reader *reader = argument;
    struct slice bytes;
    reader->last = conn_peek_idle(reader->conn, &bytes, sys_clock_ns() + 100 * NS_PER_MS);
    reader->over = true;
}

static void run_hold_the_carrier(void *unused)
{
    (void)unused;
    kernel_pass(200 * NS_PER_MS);
}

static void test_bytes_that_lay_there_count_after_a_turn_longer_than_the_deadline(void **state)
{
    (void)state;
    static struct reader reader;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        start_world(round);
        kernel_knobs.late_percent = 0;
        drive_start(1);
        conn_open(&conns[0], kernel_pair(&peer));
        reader = (struct reader){.conn = &conns[0]};
        peer_say(peer, "some");
        drive_spawn("reader", run_peek_within_100_ms, &reader);
        drive_spawn("holder", run_hold_the_carrier, NULL);
        drive_run();
        assert_true(reader.over);
        assert_in_range(reader.last, 1, 4);
        drive_spawn("close", run_close, &conns[0]);
        drive_run();
        drive_stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_that_lay_there_count_after_a_turn_longer_than_the_deadline),
        cmocka_unit_test(test_every_byte_comes_once_and_in_order),
        cmocka_unit_test(test_who_does_not_read_holds_two_buffers_at_most),
        cmocka_unit_test(test_without_a_provided_buffer_it_uses_its_own_and_comes_back),
        cmocka_unit_test(test_close_with_a_recv_in_flight_sends_a_fin),
        cmocka_unit_test(test_close_cancels_a_recv_that_a_shutdown_does_not_end),
        cmocka_unit_test(test_abort_resets),
    };
    fill_source();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
