/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: an op's record lives until its final completion, whatever a cancel
 * says; what had succeeded when the deadline or a cancel came counts; a completion
 * for a retired record reaches nobody. Method: the scripted kernel, many seeds:
 * late completions, cancels that lose, full queues, no memory.
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
#include "fiber_kit.h"
#include "kernel.h"
#include "ring/carrier.h"

#define PORT 7000
#define ROUNDS 300

static struct ops *ops(void)
{
    return &drive_carriers()[0].ops;
}

/* ------------------------------------------------------------ no memory (where libc permits) */

static bool memory_fails;

#if !KIT_SANITIZED
extern void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
    return memory_fails ? NULL : __libc_calloc(count, size);
}
#endif

/* ------------------------------------------------------------ armed ops */

/* What an armed op was told. */
struct told {
    struct op *op;
    unsigned events, finals;
    size_t bytes;
    int last;
};

static void deliver(struct op *op, const struct op_event *event, void *owner)
{
    struct told *told = owner;
    if (op != told->op || told->finals > 0) {
        kernel_violation("an event for an op that has had its final one");
    }
    told->events++;
    told->finals += event->final;
    told->last = event->result;
    if (event->result > 0) {
        told->bytes += (size_t)event->result;
    }
    if (event->has_buffer) {
        op_buffer_give(ops(), event->buffer);
    }
}

static struct told *arm(struct told *told, int fd)
{
    *told = (struct told){.op = NULL};
    told->op = op_recv_arm(ops(), fd, 4096, (struct op_target){.deliver = deliver, .owner = told});
    assert_non_null(told->op);
    return told;
}

/* Ops in flight but for the carrier's own read of its eventfd. */
static unsigned live(void)
{
    return ops()->live - (drive_carriers()[0].event_op != NULL);
}

static void test_record_lives_until_the_final_event_however_a_cancel_ends(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct told told;
        struct kernel_file *peer;
        char bytes[6000] = {0};
        size_t sent = 0;

        kernel_start(round);
        kernel_knobs.recv_cap = round % 2 == 0;
        kernel_knobs.late_percent = (unsigned)kernel_random(80);
        drive_start(1);
        int fd = kernel_pair(&peer);
        arm(&told, fd);
        uint32_t generation = told.op->generation;
        bool asked = false;
        while (told.finals == 0) {
            assert_true(told.op->in_flight);
            assert_int_equal(told.op->generation, generation);
            assert_int_equal(live(), 1);
            if (kernel_random(3) == 0) {
                sent += (size_t)peer_send(peer, bytes, kernel_random(3000));
            }
            if (kernel_random(4) == 0) {
                op_cancel(ops(), told.op);
                op_cancel(ops(), told.op); /* asking twice does nothing */
                asked = true;
            }
            carrier_turn(&drive_carriers()[0]);
        }
        assert_int_equal(told.op->generation, generation + 1);
        assert_int_equal(live(), 0);
        /* no byte is lost: what was not delivered is still in the socket */
        assert_int_equal(told.bytes + peer_unread(peer), sent);
        if (told.last <= 0) {
            assert_true(asked);
            assert_int_equal(told.last, -ECANCELED);
        }
        drive_run();
        sys_close(fd);
        drive_stop();
    }
}

static void test_completion_for_a_retired_record_is_dropped(void **state)
{
    (void)state;
    struct told told, next;
    struct kernel_file *peer;

    kernel_start(0);
    drive_start(1);
    int fd = kernel_pair(&peer);
    arm(&told, fd);
    uint64_t retired = (uint64_t)told.op->generation << 32 | told.op->index;
    peer_finish(peer);
    drive_run();
    assert_int_equal(told.finals, 1);

    struct ring_event late = {.user_data = retired, .result = 42};
    ops_dispatch(ops(), &late); /* nobody's: the record is free */
    assert_int_equal(ops()->stale, 1);
    arm(&next, fd);
    assert_ptr_equal(next.op, told.op); /* the same record, another generation */
    ops_dispatch(ops(), &late);
    assert_int_equal(ops()->stale, 2);
    assert_int_equal(next.events, 0);
    assert_true(next.op->in_flight);
    late.user_data = 0; /* a cancel that found nothing */
    ops_dispatch(ops(), &late);
    assert_int_equal(ops()->stale, 2);
    drive_run();
    assert_int_equal(next.finals, 1);
    ops()->stale = 0;
    sys_close(fd);
    drive_stop();
}

static void test_a_full_submission_queue_is_submitted_and_used_again(void **state)
{
    (void)state;
    enum { COUNT = 700 }; /* more than two chunks of records */
    static struct told told[COUNT];
    static struct kernel_file *peers[COUNT];
    static int fds[COUNT];

    kernel_start(0);
    kernel_knobs.sq_entries = 3;
    kernel_knobs.buffers = COUNT; /* some ends of streams take one along */
    drive_start(1);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = kernel_pair(&peers[i]);
        arm(&told[i], fds[i]);
    }
    drive_run();
    assert_int_equal(live(), COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (i % 2 == 0) {
            op_cancel(ops(), told[i].op);
        } else {
            peer_finish(peers[i]);
        }
    }
    drive_run();
    assert_int_equal(live(), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(told[i].finals, 1);
        assert_int_equal(told[i].last, i % 2 == 0 ? -ECANCELED : 0);
        sys_close(fds[i]);
    }
    drive_stop();
}

static void test_without_memory_for_a_record_nothing_is_submitted(void **state)
{
    (void)state;
    struct told told;
    struct kernel_file *peer;
    enum { CHUNK = 256 };
    static struct told many[CHUNK];

    if (KIT_SANITIZED || kit_on_valgrind()) {
        skip(); /* their calloc is called, not ours */
    }
    kernel_start(0);
    drive_start(1);
    int fd = kernel_pair(&peer);
    drive_run();
    unsigned armed = 0;
    while (ops()->free_count > 0) {
        arm(&many[armed++], fd);
    }
    drive_run();
    unsigned in_flight = kernel_ops_in_flight();
    memory_fails = true;
    struct op *op =
        op_recv_arm(ops(), fd, 4096, (struct op_target){.deliver = deliver, .owner = &told});
    memory_fails = false;
    assert_null(op);
    drive_run();
    assert_int_equal(kernel_ops_in_flight(), in_flight);
    for (unsigned i = 0; i < armed; i++) {
        op_cancel(ops(), many[i].op);
    }
    drive_run();
    arm(&told, fd); /* later there is memory again */
    op_cancel(ops(), told.op);
    drive_run();
    assert_int_equal(told.last, -ECANCELED);
    sys_close(fd);
    drive_stop();
}

/* ------------------------------------------------------------ awaited ops */

struct waiting {
    int fd;
    const char *bytes;
    size_t length;
    uint64_t deadline_ns;
    struct sys_address address;
    /* out */
    bool over;
    ssize_t result;
    uint64_t over_ns;
};

static void end(struct waiting *waiting, ssize_t result)
{
    waiting->result = result;
    waiting->over = true;
    waiting->over_ns = kernel_now_ns();
}

static void run_send(void *argument)
{
    struct waiting *waiting = argument;
    end(waiting, op_send(ops(), waiting->fd,
                         (struct op_bytes){.src = waiting->bytes, .length = waiting->length},
                         waiting->deadline_ns));
}

static void run_connect(void *argument)
{
    struct waiting *waiting = argument;
    end(waiting, op_connect(ops(), waiting->fd, &waiting->address, waiting->deadline_ns));
}

static void test_send_at_its_deadline_tells_what_was_sent(void **state)
{
    (void)state;
    static const char bytes[5000];
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        kernel_start(round);
        drive_start(1);
        int fd = kernel_pair(&peer);
        size_t window = kernel_random(3) == 0 ? 0 : 1 + kernel_random(4999);
        peer_window(peer, window);
        struct waiting waiting = {.fd = fd,
                                  .bytes = bytes,
                                  .length = sizeof(bytes),
                                  .deadline_ns = kernel_now_ns() + 50 * NS_PER_MS};
        drive_spawn("send", run_send, &waiting);
        drive_pass(49 * NS_PER_MS);
        assert_false(waiting.over);
        drive_pass(3 * NS_PER_MS);
        assert_true(waiting.over);
        assert_int_equal(waiting.result, window == 0 ? -ETIMEDOUT : (ssize_t)window);
        assert_true(waiting.over_ns >= waiting.deadline_ns);
        sys_close(fd);
        drive_stop();
    }
}

static void test_an_op_that_races_its_deadline_tells_the_truth(void **state)
{
    (void)state;
    unsigned connected = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct waiting waiting = {.over = false};
        kernel_start(round);
        kernel_knobs.late_percent = 60;
        drive_start(1);
        kernel_hang(PORT);
        sys_parse_address("127.0.0.1", PORT, &waiting.address);
        waiting.fd = sys_socket(&waiting.address, false);
        waiting.deadline_ns = kernel_now_ns() + 10 * NS_PER_MS;
        drive_spawn("connect", run_connect, &waiting);
        drive_run();
        kernel_pass(10 * NS_PER_MS + kernel_random(200) * NS_PER_US);
        for (uint64_t turns = kernel_random(6); turns > 0; turns--) {
            carrier_turn(&drive_carriers()[0]);
        }
        kernel_answer(PORT);
        drive_pass(NS_PER_MS);
        assert_true(waiting.over);
        bool through = kernel_accept(PORT) != NULL;
        if (waiting.result == 0) {
            assert_true(through);
            connected++;
        } else {
            assert_int_equal(waiting.result, -ETIMEDOUT);
        }
        sys_close(waiting.fd);
        drive_stop();
    }
    assert_in_range(connected, 1, ROUNDS - 1); /* both happen */
}

static void test_a_cancelled_fiber_sees_its_op_to_the_end(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer;
        kernel_start(round);
        drive_start(1);
        struct waiting waiting = {.fd = kernel_pair(&peer), .bytes = "abc", .length = 3};
        peer_window(peer, 0);
        struct fiber *fiber = drive_spawn("send", run_send, &waiting);
        bool reads = kernel_random(2) == 0;
        bool before = kernel_random(2) == 0; /* cancelled before it has even run */
        if (!before) {
            drive_run();
        }
        if (reads) {
            peer_window(peer, 100);
        }
        fiber_cancel(fiber);
        drive_run();
        assert_true(waiting.over);
        /* what had left when the cancel came is what it tells */
        if (waiting.result == -ECANCELED) {
            assert_string_equal(peer_heard(peer), "");
        } else {
            assert_true(reads);
            assert_int_equal(waiting.result, strlen(peer_heard(peer)));
        }
        assert_int_equal(live(), 0);
        sys_close(waiting.fd);
        drive_stop();
    }
}

static void test_a_forced_failure_comes_back_as_it_is(void **state)
{
    (void)state;
    struct kernel_file *peer;
    kernel_start(0);
    drive_start(1);
    struct waiting waiting = {.fd = kernel_pair(&peer), .bytes = "abc", .length = 3};
    kernel_fail(KERNEL_SEND, 1, 1, -ENOBUFS);
    drive_spawn("send", run_send, &waiting);
    drive_run();
    assert_true(waiting.over);
    assert_int_equal(waiting.result, -ENOBUFS);
    kernel_short(KERNEL_SEND, 1, 2);
    drive_spawn("send", run_send, &waiting);
    drive_run();
    assert_int_equal(waiting.result, 2);
    assert_string_equal(peer_heard(peer), "ab");
    sys_close(waiting.fd);
    drive_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_lives_until_the_final_event_however_a_cancel_ends),
        cmocka_unit_test(test_completion_for_a_retired_record_is_dropped),
        cmocka_unit_test(test_a_full_submission_queue_is_submitted_and_used_again),
        cmocka_unit_test(test_without_memory_for_a_record_nothing_is_submitted),
        cmocka_unit_test(test_send_at_its_deadline_tells_what_was_sent),
        cmocka_unit_test(test_an_op_that_races_its_deadline_tells_the_truth),
        cmocka_unit_test(test_a_cancelled_fiber_sees_its_op_to_the_end),
        cmocka_unit_test(test_a_forced_failure_comes_back_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
