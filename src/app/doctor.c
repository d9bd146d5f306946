/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - see doctor.h. Called by main, before there are other threads.
 */
#include "app/doctor.h"

#include <stdlib.h>

#include "app/run.h"
#include "app/servers.h"
#include "base/must.h"
#include "io/listener.h"
#include "ring/sys.h"

static unsigned carriers_of(const struct config *config)
{
    unsigned count = config->carriers > 0 ? (unsigned)config->carriers : sys_processors();
    return count < CARRIERS_MAX ? count : CARRIERS_MAX;
}

static size_t format(char *dst, size_t capacity, const struct doctor_report *report, bool json)
{
    return json ? doctor_json(dst, capacity, report)
                : doctor_table(dst, capacity, report, sys_is_terminal(1));
}

int doctor(const struct config *config)
{
    int code = RUN_FAILED;
    struct doctor_plan plan = {
        .carriers = carriers_of(config),
        .listeners = servers_wanted(config),
        .threads = servers_threads(config),
        .stack_bytes = config->stack_bytes,
        .max_connections = (uint64_t)config->max_connections,
    };
    struct doctor_host *host = calloc(1, sizeof(*host));
    struct doctor_report *report = calloc(1, sizeof(*report));
    if (host == NULL || report == NULL) {
        goto done;
    }
    doctor_host_read(host, sys_read_file);
    doctor_judge(report, host, &plan);
    size_t length = format(NULL, 0, report, config->doctor_json);
    char *text = malloc(length + 1);
    if (text == NULL) {
        goto done;
    }
    size_t written = format(text, length + 1, report, config->doctor_json);
    must(written == length);
    code = sys_write_all(1, text, length) < 0 ? RUN_FAILED : report->exit_code;
    free(text);

done:
    free(report);
    free(host);
    return code;
}
