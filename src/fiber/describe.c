/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - fibers in words: names, descriptions, dumps (the rest of fiber.h
 * and sched.h). Own formatting throughout, no libc: a signal handler and a
 * failed assertion describe fibers too, and neither may wait for a lock.
 */
#include "fiber/describe.h"

#include "base/time.h"
#include "fiber/fiber.h"

void text_init(struct text *text, char *dst, size_t size)
{
    text->dst = dst;
    text->size = size;
    text->length = 0;
    if (size > 0) {
        dst[0] = '\0';
    }
}

void text_string(struct text *text, const char *string)
{
    size_t length = text->length;
    for (; *string != '\0' && length + 1 < text->size; string++) {
        text->dst[length++] = *string;
    }
    if (length < text->size) {
        text->dst[length] = '\0';
    }
    text->length = length;
}

void text_number(struct text *text, uint64_t value)
{
    char digits[21];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    text_string(text, first);
}

static void text_name(struct text *text, const struct fiber *fiber)
{
    text_string(text, fiber->name.prefix);
    if (fiber->name.number != 0) {
        text_number(text, fiber->name.number);
    }
}

void text_fiber(struct text *text, const struct fiber *fiber)
{
    text_string(text, "Fiber[#");
    text_number(text, fiber->id);
    text_string(text, ",");
    text_name(text, fiber);
    switch (fiber->state) {
    case FIBER_READY:
    case FIBER_RUNNING:
        text_string(text, "]/runnable@carrier-");
        break;
    case FIBER_PARKED:
        text_string(text, "]/parked(");
        text_string(text, fiber->waiting_for);
        text_string(text, ")@carrier-");
        break;
    case FIBER_DONE:
        text_string(text, "]/done@carrier-");
        break;
    }
    text_number(text, fiber->sched->setup.number);
}

size_t fiber_format_name(const struct fiber *fiber, char *dst, size_t size)
{
    struct text text;
    text_init(&text, dst, size);
    text_name(&text, fiber);
    return text.length;
}

size_t fiber_describe(const struct fiber *fiber, char *dst, size_t size)
{
    struct text text;
    text_init(&text, dst, size);
    text_fiber(&text, fiber);
    return text.length;
}

void fiber__describe_current(char *dst, size_t size)
{
    const struct sched *sched = sched_current();
    struct text text;
    text_init(&text, dst, size);
    if (sched == NULL) {
        text_string(&text, "a platform thread");
    } else if (sched->current != NULL) {
        text_fiber(&text, sched->current);
    } else {
        text_string(&text, "the loop of carrier-");
        text_number(&text, sched->setup.number);
    }
}

void sched_dump(struct sched *sched, void (*line)(void *sink, const char *text, size_t length),
                void *sink)
{
    uint64_t now_ns = sched->setup.clock_ns();
    for (struct list *node = sched->live.next; node != &sched->live; node = node->next) {
        const struct fiber *fiber = container_of(node, struct fiber, live_link);
        char dst[FIBER_DESCRIBE_SIZE + 96];
        struct text text;
        text_init(&text, dst, sizeof dst);
        text_fiber(&text, fiber);
        text_string(&text, " for ");
        text_number(&text, (now_ns - fiber->state_since_ns) / NS_PER_MS);
        text_string(&text, " ms, stack ");
        text_number(&text, fiber->stack.size / 1024);
        text_string(&text, " KiB, ");
        text_number(&text, fiber->switches);
        text_string(&text, fiber->switches == 1 ? " switch" : " switches");
        line(sink, text.dst, text.length);
    }
}
