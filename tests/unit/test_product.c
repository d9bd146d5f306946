/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a product takes as long as its slowest part; a part that fails, a deadline
 * or a client that resets ends the other parts in the same moment, their calls are
 * reset and nothing is left of them; /fanout counts each call for itself; bad input
 * reaches nobody. Method: the app's and the remote's real routes in one world of the
 * scripted kernel, or the test as the remote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "kernel_app.h"

#define ROUNDS 20

#define INFO(id)                                                                                   \
    "\"productInfo\":{\"productId\":\"" id                                                         \
    "\",\"productOptions\":[{\"size\":\"64GB\",\"color\":\"Black\",\"price\":699.99},"             \
    "{\"size\":\"128GB\",\"color\":\"Black\",\"price\":749.99}]}"
#define REVIEWS "\"reviews\":{\"noOfReviews\":200,\"overallRating\":4.5}"
#define DELIVERY "\"deliveryDetails\":{\"deliveryOptions\":[\"NEXT_DAY\",\"TWO_DAY\"]}"

static void expect_silence(struct kernel_file *client)
{
    assert_string_equal(peer_heard(client), "");
}

/* ------------------------------------------------------------ as it should be */

static void test_a_product_takes_as_long_as_its_slowest_part(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *clients[20];
        world_start(round, true);
        for (int i = 0; i < 20; i++) {
            clients[i] = world_get(i % 2 == 0 ? "/product/x" : "/v2/product/x");
        }
        drive_pass(2 * NS_PER_S - NS_PER_MS);
        for (int i = 0; i < 20; i++) {
            expect_silence(clients[i]);
        }
        drive_pass(3 * NS_PER_MS);
        for (int i = 0; i < 20; i++) {
            world_expect(clients[i], 200,
                         i % 2 == 0 ? "{\"productId\":\"x\"," INFO("x") "," REVIEWS "}"
                                    : "{\"productId\":\"x\"," INFO("x") "," REVIEWS "," DELIVERY
                                                                        "}");
        }
        world_stop();
    }
}

static void test_an_id_stays_what_it_is_on_its_way_to_the_remote_and_back(void **state)
{
    (void)state;
    world_start(0, true);
    struct kernel_file *odd = world_get("/product/a%22%5C%0A%2Fb%20%C3%A9%25?deadline=1h");
    drive_pass(2 * NS_PER_S + 2 * NS_PER_MS);
    world_expect(odd, 200,
                 "{\"productId\":\"a\\\"\\\\\\n/b \xc3\xa9%\"," INFO("a\\\"\\\\\\n/b \xc3\xa9%"));
    world_stop();
}

/* ------------------------------------------------------------ failures */

static void test_a_part_that_fails_cancels_its_siblings(void **state)
{
    (void)state;
    static const char *paths[] = {"/product/x?fail=info", "/product/x?fail=reviews",
                                  "/v2/product/x?fail=info", "/v2/product/x?fail=reviews",
                                  "/v2/product/x?fail=delivery"};
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_start(round, true);
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
            struct kernel_file *client = world_get(paths[i]);
            drive_pass(98 * NS_PER_MS);
            expect_silence(client);
            drive_pass(4 * NS_PER_MS);
            world_expect(client, 502, "status 500");
            assert_int_equal(world_calls.open, 1); /* the failed call's; the others were reset */
            peer_close(client);
            drive_run();
            assert_int_equal(atomic_load(&world_limit.live), 1); /* the remote's end of it */
        }
        world_stop();
    }
}

static void test_at_the_deadline_all_parts_are_cancelled(void **state)
{
    (void)state;
    static const char *paths[] = {"/product/x?deadline=500ms", "/v2/product/x?deadline=0.5s",
                                  "/v2/product/x?a=b&deadline=500ms"};
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_start(round, true);
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
            struct kernel_file *client = world_get(paths[i]);
            drive_pass(498 * NS_PER_MS);
            expect_silence(client);
            drive_pass(4 * NS_PER_MS);
            world_expect(client, 504, "not complete at the deadline");
            assert_int_equal(world_calls.open, 0);
            peer_close(client);
            drive_run();
            assert_int_equal(atomic_load(&world_limit.live), 0);
        }
        /* v2 at 1.5 s: the info is there, its delivery on the way */
        struct kernel_file *client = world_get("/v2/product/x?deadline=1500ms");
        drive_pass(1498 * NS_PER_MS);
        expect_silence(client);
        drive_pass(4 * NS_PER_MS);
        world_expect(client, 504, "not complete at the deadline");
        assert_int_equal(world_calls.open, 0);
        world_stop();
    }
}

static void test_a_clients_reset_undoes_all_parts(void **state)
{
    (void)state;
    static const char *paths[] = {"/product/x", "/v2/product/x", "/fanout/20/60"};
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_start(round, true);
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
            struct kernel_file *client = world_get(paths[i]);
            drive_pass(NS_PER_S / 2);
            uint64_t now_ns = kernel_now_ns();
            peer_reset(client);
            drive_run();
            assert_int_equal(atomic_load(&world_limit.live), 0);
            assert_int_equal(world_calls.open, 0);
            assert_int_equal(kernel_now_ns(), now_ns);
        }
        world_stop();
    }
}

/* accept_both - the calls of a product come in any order. */
static void accept_both(struct kernel_file **info, struct kernel_file **reviews)
{
    *info = *reviews = NULL;
    for (int i = 0; i < 2; i++) {
        struct kernel_file *remote = kernel_accept(REMOTE_PORT);
        assert_non_null(remote);
        const char *heard = peer_heard(remote);
        if (strncmp(heard, "GET /productInfo/x HTTP/1.1\r\n", 29) == 0) {
            *info = remote;
        } else if (strncmp(heard, "GET /reviews/x HTTP/1.1\r\n", 25) == 0) {
            *reviews = remote;
        } else {
            fail_msg("heard \"%.80s\"", heard);
        }
    }
    assert_true(*info != NULL && *reviews != NULL);
}

static void answer(struct kernel_file *remote, const char *body)
{
    char text[512];
    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    peer_say(remote, text);
}

static void test_what_is_no_json_object_is_not_passed_on(void **state)
{
    (void)state;
    static const char *bodies[] = {"",  "no",      "[1]",        "{\"a\":1",      "{\"a\":1}}",
                                   "1", "{'a':1}", "{\"a\":01}", "{\"a\":\"\n\"}"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        world_start((unsigned)i, false);
        struct kernel_file *client = world_get("/product/x");
        struct kernel_file *info, *reviews;
        accept_both(&info, &reviews);
        answer(info, bodies[i]);
        drive_run();
        world_expect(client, 502, "no JSON object");
        assert_true(peer_got_reset(reviews)); /* the remote stops */
        assert_false(peer_got_reset(info));
        world_stop();
    }
}

static void test_a_remote_without_room_is_a_503_and_one_that_is_slow_a_504(void **state)
{
    (void)state;
    world_start(0, false);
    struct kernel_file *client = world_get("/product/x");
    struct kernel_file *info, *reviews;
    accept_both(&info, &reviews);
    peer_say(info, "HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n");
    drive_run();
    world_expect(client, 503, "status 503");
    assert_true(peer_got_reset(reviews));

    client = world_get("/v2/product/x");
    drive_pass(6 * NS_PER_S - NS_PER_MS); /* the info's second and five */
    expect_silence(client);
    drive_pass(2 * NS_PER_MS);
    world_expect(client, 504, "did not answer in time");
    assert_int_equal(world_calls.open, 0);
    world_stop();
}

/* A half-read answer must not come to the next call. */
static void test_a_call_that_is_cancelled_amid_its_answer_leaves_no_connection(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_start(round, false);
        struct kernel_file *client = world_get("/product/x");
        struct kernel_file *info, *reviews;
        accept_both(&info, &reviews);
        peer_say(info, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
        drive_run();
        peer_say(reviews, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
        drive_run();
        world_expect(client, 502, "status 500");
        assert_true(peer_got_reset(info));
        assert_int_equal(world_calls.open, 1);
        world_stop();
    }
}

/* ------------------------------------------------------------ fan-out */

static void test_a_fan_out_waits_for_all_side_by_side(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        world_start(round, true);
        struct kernel_file *client = world_get("/fanout/100/1");
        drive_pass(NS_PER_S - NS_PER_MS);
        expect_silence(client);
        drive_pass(3 * NS_PER_MS);
        world_expect(client, 200, "{\"count\":100,\"succeeded\":100,\"failed\":0,\"slowest\":1.0");
        assert_int_equal(world_app.remote_invocations, 100);
        world_expect(world_get("/fanout/1/0"), 200, "{\"count\":1,\"succeeded\":1,\"failed\":0");
        world_stop();
    }
}

static void test_a_call_of_a_fan_out_fails_for_itself(void **state)
{
    (void)state;
    world_start(0, false);
    struct kernel_file *client = world_get("/fanout/3/1");
    struct kernel_file *remotes[3];
    for (int i = 0; i < 3; i++) {
        remotes[i] = kernel_accept(REMOTE_PORT);
        assert_non_null(remotes[i]);
        assert_int_equal(strncmp(peer_heard(remotes[i]), "GET /remote/1 ", 14), 0);
    }
    peer_reset(remotes[1]);
    drive_pass(NS_PER_S);
    expect_silence(client);
    answer(remotes[0], "well");
    answer(remotes[2], "well");
    drive_run();
    world_expect(client, 200,
                 "{\"count\":3,\"succeeded\":2,\"failed\":1,\"slowest\":1.000,\"sum\":2.000,"
                 "\"total\":1.000}");
    client = world_get("/fanout/2/1");
    drive_pass(6 * NS_PER_S + NS_PER_MS);
    world_expect(client, 504, "none of the calls succeeded");
    kernel_refuse(REMOTE_PORT);
    world_expect(world_get("/fanout/5/1"), 502, "none of the calls succeeded");
    world_stop();
}

static void test_a_fan_out_without_descriptors_counts_what_failed(void **state)
{
    (void)state;
    world_start(0, true);
    kernel_knobs.descriptors =
        3 + kernel_open_descriptors() + 5; /* client, two calls, their ends */
    struct kernel_file *client = world_get("/fanout/10/1");
    drive_pass(NS_PER_S + 3 * NS_PER_MS);
    const char *heard = peer_heard(client);
    assert_non_null(strstr(heard, "200 OK"));
    assert_non_null(strstr(heard, "\"count\":10,"));
    assert_null(strstr(heard, "\"failed\":0,"));
    world_stop();
}

static void test_small_requests_made_any_number_of_calls(void **state)
{
    (void)state;
    world_start(0, true);
    world_app.fanout_calls_max = 25;
    world_expect(world_get("/fanout/26/0"), 503, "at most 25 of all fan-outs together");
    struct kernel_file *resets = world_get("/fanout/10/60");
    struct kernel_file *waits = world_get("/fanout/10/1");
    world_expect(world_get("/fanout/6/1"), 503, "no room for 6 more calls");
    assert_int_equal(world_calls.open, 20);
    peer_reset(resets); /* what one gives back the next may have */
    drive_run();
    assert_int_equal(atomic_load(&world_app.fanout_calls), 10);
    struct kernel_file *next = world_get("/fanout/15/1");
    drive_pass(NS_PER_S + 2 * NS_PER_MS);
    world_expect(waits, 200, "\"succeeded\":10,");
    world_expect(next, 200, "\"succeeded\":15,");
    assert_int_equal(atomic_load(&world_app.fanout_calls), 0);
    world_stop();
}

/* ------------------------------------------------------------ bad input */

static void test_bad_input_is_a_400_and_reaches_nobody(void **state)
{
    (void)state;
    static const char *paths[] = {
        "/product/%FF",
        "/product/%ED%A0%80",
        "/product/x?fail=delivery",
        "/product/x?fail=",
        "/product/x?fail",
        "/v2/product/x?fail=all",
        "/product/x?deadline=soon",
        "/product/x?deadline=-1",
        "/v2/product/x?deadline=25h",
        "/v2/product/x?fail=info&deadline=",
        "/fanout/0/1",
        "/fanout/1001/1",
        "/fanout/99999999999999999999999999/1",
        "/fanout/-1/1",
        "/fanout/1.5/1",
        "/fanout/ten/1",
        "/fanout/10/x",
        "/fanout/10/25h",
        "/fanout/10/-1",
    };
    char long_id[256] = "/product/";
    world_start(0, true);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        world_expect(world_get(paths[i]), 400, "\"status\":400");
    }
    memset(long_id + 9, 'i', 129);
    world_expect(world_get(long_id), 400, "128 bytes");
    world_expect(world_get("/product/"), 404, "");
    world_expect(world_get("/product/a/b"), 404, "");
    assert_int_equal(world_calls.open, 0);
    long_id[9 + 128] = '\0';
    struct kernel_file *client = world_get(long_id);
    drive_pass(2 * NS_PER_S + 2 * NS_PER_MS);
    world_expect(client, 200, "iiii");
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_product_takes_as_long_as_its_slowest_part),
        cmocka_unit_test(test_an_id_stays_what_it_is_on_its_way_to_the_remote_and_back),
        cmocka_unit_test(test_a_part_that_fails_cancels_its_siblings),
        cmocka_unit_test(test_at_the_deadline_all_parts_are_cancelled),
        cmocka_unit_test(test_a_clients_reset_undoes_all_parts),
        cmocka_unit_test(test_what_is_no_json_object_is_not_passed_on),
        cmocka_unit_test(test_a_remote_without_room_is_a_503_and_one_that_is_slow_a_504),
        cmocka_unit_test(test_a_call_that_is_cancelled_amid_its_answer_leaves_no_connection),
        cmocka_unit_test(test_a_fan_out_waits_for_all_side_by_side),
        cmocka_unit_test(test_a_call_of_a_fan_out_fails_for_itself),
        cmocka_unit_test(test_a_fan_out_without_descriptors_counts_what_failed),
        cmocka_unit_test(test_small_requests_made_any_number_of_calls),
        cmocka_unit_test(test_bad_input_is_a_400_and_reaches_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
