/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - the answer to SIGQUIT. Called by run.c on the main thread; writes on the carriers.
 */
#include "app/dump.h"

#include <stdio.h>
#include <string.h>

#include "io/listener.h"
#include "ring/sys.h"

/* One a carrier; static, since the process has one dump at a time. */
static struct dump_request {
    struct message message;
    atomic_bool pending;
    struct carrier *carrier;
} requests[CARRIERS_MAX];

struct page {
    char text[2048];
    size_t length;
};

static void page_flush(struct page *page)
{
    (void)sys_write_all(2, page->text, page->length);
    page->length = 0;
}

static void page_line(void *sink, const char *text, size_t length)
{
    struct page *page = sink;
    if (length + 1 > sizeof(page->text) - page->length) {
        page_flush(page);
    }
    memcpy(page->text + page->length, text, length);
    page->text[page->length + length] = '\n';
    page->length += length + 1;
}

static void run_dump(struct message *message)
{
    struct dump_request *request = container_of(message, struct dump_request, message);
    struct sched *sched = &request->carrier->sched;
    struct page page = {.length = 0};
    char head[128];

    int length = snprintf(head, sizeof(head), "Full fiber dump: %s, %zu fibers",
                          request->carrier->name, sched->live_count);
    page_line(&page, head, (size_t)length);
    sched_dump(sched, page_line, &page);
    page_flush(&page);
    atomic_store(&request->pending, false);
}

void dump_fibers(struct carrier *carriers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct dump_request *request = &requests[i];
        if (!atomic_exchange(&request->pending, true)) {
            request->message.run = run_dump;
            request->carrier = &carriers[i];
            carrier_post(&carriers[i], &request->message);
        }
    }
}
