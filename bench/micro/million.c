/* SPDX-License-Identifier: Apache-2.0 */
/*
 * million.c - a million fibers that sleep five seconds at the same time, on one
 * carrier a processor. The count and the seconds may be given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "ring/sys.h"
#include "ringload/sleepers.h"

int main(int count, char **arguments)
{
    struct log_setup log = {.level = LOG_WARN};
    struct sleepers_setup setup = {.count = 1000000, .sleep_ns = 5 * NS_PER_S};
    struct sleepers_result result;

    log_init(&log);
    setup.carriers = sys_processors();
    if (count > 1) {
        setup.count = strtoull(arguments[1], NULL, 10);
    }
    if (count > 2) {
        setup.sleep_ns = (uint64_t)(strtod(arguments[2], NULL) * (double)NS_PER_S);
    }
    if (setup.count == 0 || count > 3) {
        fprintf(stderr, "usage: million [FIBERS [SECONDS]]\n");
        return 2;
    }
    int error = sleepers_run(&setup, &result);
    if (error < 0) {
        fprintf(stderr, "million: no carriers: %s\n", strerrordesc_np(-error));
        return 1;
    }
    return sleepers_print(&setup, &result, 0);
}
