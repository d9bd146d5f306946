/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch.c - what it costs to leave one context for another: ours, libc's
 * swapcontext, and boost.context where it is installed (HAVE_BOOST_CONTEXT). Two
 * contexts on one thread change places; one switch is half a round trip.
 */
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include "base/must.h"
#include "fiber/switch.h"
#include "ring/sys.h"
#include "rounds.h"

#define STACK_BYTES 65536
#define TRIPS 1000000
#define TRIPS_SWAPCONTEXT 50000 /* it makes a system call each time */

static _Alignas(64) char stacks[3][STACK_BYTES];

/* ------------------------------------------------------------ ours */

static struct switch_context our_loop;
static struct switch_context our_context;

static void our_entry(void)
{
    for (;;) {
        switch_to(&our_context, &our_loop);
    }
}

static void our_round_trip(void)
{
    switch_to(&our_loop, &our_context);
}

static void our_prepare(void)
{
    switch_adopt(&our_loop);
    switch_prepare(&our_context, stacks[0], STACK_BYTES, our_entry);
}

/* ------------------------------------------------------------ swapcontext */

static ucontext_t libc_loop;
static ucontext_t libc_context;

static void libc_entry(void)
{
    for (;;) {
        must(swapcontext(&libc_context, &libc_loop) == 0);
    }
}

static void libc_round_trip(void)
{
    must(swapcontext(&libc_loop, &libc_context) == 0);
}

static void libc_prepare(void)
{
    must(getcontext(&libc_context) == 0);
    libc_context.uc_stack.ss_sp = stacks[1];
    libc_context.uc_stack.ss_size = STACK_BYTES;
    libc_context.uc_link = NULL;
    makecontext(&libc_context, libc_entry, 0);
}

/* ------------------------------------------------------------ boost.context */

#ifdef HAVE_BOOST_CONTEXT
/* The C functions below boost::context, from boost/context/detail/fcontext.hpp. */
typedef void *fcontext_t;
struct transfer {
    fcontext_t context;
    void *data;
};
struct transfer jump_fcontext(fcontext_t to, void *data);
fcontext_t make_fcontext(void *stack_top, size_t size, void (*entry)(struct transfer));

static fcontext_t boost_context;

static void boost_entry(struct transfer from)
{
    for (;;) {
        from = jump_fcontext(from.context, NULL);
    }
}

static void boost_round_trip(void)
{
    boost_context = jump_fcontext(boost_context, NULL).context;
}

static void boost_prepare(void)
{
    boost_context = make_fcontext(stacks[2] + STACK_BYTES, STACK_BYTES, boost_entry);
}
#endif

/* ------------------------------------------------------------ all of them */

struct contender {
    void (*prepare)(void);
    void (*round_trip)(void);
    unsigned trips;
    struct rounds rounds;
};

static struct contender contenders[] = {
    {our_prepare, our_round_trip, TRIPS, {.name = "ours"}},
#ifdef HAVE_BOOST_CONTEXT
    {boost_prepare, boost_round_trip, TRIPS, {.name = "boost.context"}},
#endif
    {libc_prepare, libc_round_trip, TRIPS_SWAPCONTEXT, {.name = "swapcontext"}},
};

#define CONTENDERS (sizeof contenders / sizeof contenders[0])

static double measure(const struct contender *contender)
{
    void (*round_trip)(void) = contender->round_trip;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < contender->trips; i++) {
        round_trip();
    }
    return (double)(sys_clock_ns() - start_ns) / contender->trips / 2;
}

int main(void)
{
    for (size_t i = 0; i < CONTENDERS; i++) {
        contenders[i].prepare();
        (void)measure(&contenders[i]);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CONTENDERS; i++) {
            rounds_add(&contenders[i].rounds, measure(&contenders[i]));
        }
    }
    printf("ours is %s\n", switch_name());
    rounds_print_head("one switch");
    for (size_t i = 0; i < CONTENDERS; i++) {
        rounds_print(&contenders[i].rounds);
    }
    return 0;
}
