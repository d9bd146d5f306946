/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_wait.c - see echo_wait.h. Called by echo.c for each connection.
 */
#include "app/echo_wait.h"

/* raise - to at least value. Returns what it was before. */
static uint64_t raise(atomic_uint_fast64_t *figure, uint64_t value)
{
    uint64_t before = atomic_load_explicit(figure, memory_order_relaxed);
    while (before < value &&
           !atomic_compare_exchange_weak_explicit(figure, &before, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return before;
}

uint64_t echo_wait_note(struct echo_wait *wait, uint64_t now_ns)
{
    uint64_t previous_ns = raise(&wait->last_ns, now_ns);
    if (previous_ns == 0) {
        atomic_store_explicit(&wait->first_ns, now_ns, memory_order_relaxed);
    } else if (now_ns > previous_ns) {
        (void)raise(&wait->max_ns, now_ns - previous_ns);
    }
    return atomic_fetch_add_explicit(&wait->connections, 1, memory_order_relaxed) + 1;
}

uint64_t echo_wait_average_ns(const struct echo_wait *wait)
{
    uint64_t connections = atomic_load_explicit(&wait->connections, memory_order_relaxed);
    uint64_t first_ns = atomic_load_explicit(&wait->first_ns, memory_order_relaxed);
    uint64_t last_ns = atomic_load_explicit(&wait->last_ns, memory_order_relaxed);

    if (connections < 2 || first_ns == 0 || last_ns < first_ns) {
        return 0; /* the first may be being noted just now */
    }
    return (last_ns - first_ns) / (connections - 1);
}
