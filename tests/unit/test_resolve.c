/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a name is resolved off the carriers, which go on meanwhile; who gives up
 * leaves the question behind, and nothing leaks; a numeric address asks nobody; a
 * client looks a name up again when a connect fails. Method: a scripted resolver,
 * real offload threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "http/client_connect.h"
#include "io/pool.h"
#include "io/resolve.h"
#include "kernel.h"
#include "ring/carrier.h"

#define PORT 7000

static struct pool offload;

struct asking {
    const char *host;
    uint64_t deadline_ns;
    struct resolve_result addresses;
    int result;
    bool over;
    struct fiber *fiber;
};

static void run_ask(void *argument)
{
    struct asking *asking = argument;
    struct resolve_target target = {.host = asking->host, .port = PORT};
    asking->result = resolve(&offload, &target, asking->deadline_ns, &asking->addresses);
    asking->over = true;
}

static void ask(struct asking *asking, const char *host, uint64_t deadline_ns)
{
    *asking = (struct asking){.host = host, .deadline_ns = deadline_ns};
    asking->fiber = drive_spawn("asking", run_ask, asking);
}

static bool is_over(void *asking)
{
    return ((struct asking *)asking)->over;
}

static bool resolver_waits(void *unused)
{
    (void)unused;
    return kernel_blocked_threads() == 1;
}

static bool offload_rests(void *unused)
{
    (void)unused;
    return !pool_is_busy(&offload) && atomic_load(&drive_carriers()[0].inbox) == NULL;
}

static void start_world(void)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start(0);
    drive_start(1);
    assert_int_equal(pool_init(&offload, "offload-", 2), 0);
    kernel_name("there", "192.0.2.7", 0);
    kernel_name("nowhere", NULL, -ENOENT);
    kernel_name("later", NULL, -EAGAIN);
}

static void stop_world(void)
{
    drive_until(offload_rests, NULL);
    pool_fini(&offload);
    drive_stop();
}

static void test_names_and_addresses(void **state)
{
    struct asking asking;
    (void)state;
    start_world();
    ask(&asking, "127.0.0.1", 0);
    drive_run();
    assert_true(asking.over);
    assert_int_equal(asking.result, 0);
    ask(&asking, "::1", 0);
    drive_run();
    assert_int_equal(asking.result, 0);
    assert_int_equal(asking.addresses.count, 1);
    assert_int_equal(kernel_resolutions(), 0);

    ask(&asking, "there", 0);
    drive_until(is_over, &asking);
    assert_int_equal(asking.result, 0);
    assert_int_equal(asking.addresses.count, 1);
    char text[64];
    const struct sockaddr_in *four = (const void *)&asking.addresses.addresses[0].storage;
    assert_non_null(inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text)));
    assert_string_equal(text, "192.0.2.7");
    assert_int_equal(ntohs(four->sin_port), PORT);
    ask(&asking, "nowhere", 0);
    drive_until(is_over, &asking);
    assert_int_equal(asking.result, -ENOENT);
    ask(&asking, "later", 0);
    drive_until(is_over, &asking);
    assert_int_equal(asking.result, -EAGAIN);
    assert_int_equal(kernel_resolutions(), 3);
    stop_world();
}

static void test_who_gives_up_leaves_the_question_behind(void **state)
{
    struct asking asking;
    (void)state;
    start_world();
    kernel_resolver_hold(true);
    ask(&asking, "there", kernel_now_ns() + NS_PER_S);
    drive_until(resolver_waits, NULL);
    drive_pass(NS_PER_S + NS_PER_MS); /* the carrier goes on meanwhile */
    assert_true(asking.over);
    assert_int_equal(asking.result, -ETIMEDOUT);
    kernel_resolver_hold(false);
    drive_until(offload_rests, NULL);

    kernel_resolver_hold(true);
    ask(&asking, "there", 0);
    drive_until(resolver_waits, NULL);
    fiber_cancel(asking.fiber);
    drive_run();
    assert_true(asking.over);
    assert_int_equal(asking.result, -ECANCELED);
    kernel_resolver_hold(false);
    stop_world();
}

static void *thread_ask(void *asking)
{
    run_ask(asking);
    return NULL;
}

static void test_a_platform_thread_asks_by_itself(void **state)
{
    struct asking asking = {.host = "there"};
    pthread_t thread;
    (void)state;
    start_world();
    assert_int_equal(pthread_create(&thread, NULL, thread_ask, &asking), 0);
    pthread_join(thread, NULL);
    assert_int_equal(asking.result, 0);
    assert_int_equal(offload.threads, 0);
    stop_world();
}

/* ------------------------------------------------------------ a remote with a name */

struct connecting {
    struct client_pool *pool;
    int result;
    bool over;
};

static void run_connect(void *argument)
{
    struct connecting *connecting = argument;
    struct conn conn;
    connecting->result = client_connect(connecting->pool, &conn, 2 * NS_PER_S);
    if (connecting->result == 0) {
        conn_close(&conn);
    }
    connecting->over = true;
}

static void start_connect(struct connecting *connecting)
{
    connecting->over = false;
    drive_spawn("connect", run_connect, connecting);
}

static bool has_connected(void *connecting)
{
    return ((struct connecting *)connecting)->over;
}

/* start_remote - something listens, and the pool is for it under that name. */
static void start_remote(const char *host, struct client_pool *pool)
{
    char url[64];
    start_world();
    kernel_serve(PORT);
    snprintf(url, sizeof(url), "http://%s:%d", host, PORT);
    struct client_pool_setup setup = {
        .url = url, .offload = &offload, .carriers = drive_carriers(), .carrier_count = 1};
    assert_int_equal(client_pool_init(pool, &setup), 0);
}

static void stop_remote(struct client_pool *pool)
{
    client_pool_close(pool);
    stop_world();
    client_pool_fini(pool);
}

static void test_a_name_is_asked_again_when_a_connect_fails(void **state)
{
    struct client_pool pool;
    struct connecting connecting = {.pool = &pool};
    (void)state;
    start_remote("there", &pool);
    for (unsigned i = 0; i < 3; i++) { /* asked once, then known */
        start_connect(&connecting);
        drive_until(has_connected, &connecting);
        assert_int_equal(connecting.result, 0);
        assert_int_equal(kernel_resolutions(), 1);
    }
    kernel_refuse(PORT);
    start_connect(&connecting);
    drive_until(has_connected, &connecting);
    assert_int_equal(connecting.result, -ECONNREFUSED);
    assert_int_equal(kernel_resolutions(), 2);
    stop_remote(&pool);
}

static void test_a_host_that_moved_and_left_silence_behind_is_found_within_the_call(void **state)
{
    struct client_pool pool;
    struct connecting connecting = {.pool = &pool};
    (void)state;
    start_remote("there", &pool);
    start_connect(&connecting);
    drive_until(has_connected, &connecting);
    assert_int_equal(connecting.result, 0);

    kernel_hang(PORT); /* the old address */
    kernel_resolver_hold(true);
    uint64_t began_ns = kernel_now_ns();
    start_connect(&connecting);
    drive_pass(NS_PER_S + NS_PER_MS); /* half of the time that there is */
    drive_until(resolver_waits, NULL);
    assert_int_equal(pool.addresses.count, 0);
    kernel_answer(PORT); /* the new one */
    kernel_resolver_hold(false);
    drive_until(has_connected, &connecting);
    assert_int_equal(connecting.result, 0);
    assert_int_equal(kernel_resolutions(), 2);
    assert_in_range(kernel_now_ns() - began_ns, NS_PER_S, 2 * NS_PER_S - 1);
    assert_int_equal(pool.addresses.count, 1);
    stop_remote(&pool);
}

static void test_a_numeric_address_has_the_whole_time(void **state)
{
    struct client_pool pool;
    struct connecting connecting = {.pool = &pool};
    (void)state;
    start_remote("127.0.0.1", &pool);
    for (unsigned i = 0; i < 2; i++) { /* the second time it is known */
        start_connect(&connecting);
        drive_pass(NS_PER_MS);
        assert_true(connecting.over);
        assert_int_equal(connecting.result, 0);
    }
    kernel_hang(PORT);
    start_connect(&connecting);
    drive_pass(2 * NS_PER_S - NS_PER_MS);
    assert_false(connecting.over);
    drive_pass(2 * NS_PER_MS);
    assert_true(connecting.over);
    assert_int_equal(connecting.result, -ETIMEDOUT);
    stop_remote(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_addresses),
        cmocka_unit_test(test_who_gives_up_leaves_the_question_behind),
        cmocka_unit_test(test_a_platform_thread_asks_by_itself),
        cmocka_unit_test(test_a_name_is_asked_again_when_a_connect_fails),
        cmocka_unit_test(test_a_host_that_moved_and_left_silence_behind_is_found_within_the_call),
        cmocka_unit_test(test_a_numeric_address_has_the_whole_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
