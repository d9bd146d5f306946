/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_group.c - the limits of the control group that this process is in, and of
 * those above it. Called by doctor_host.c.
 *
 *   /proc/self/cgroup   0::/a/b            version 2: /sys/fs/cgroup/a/b, /sys/fs/cgroup/a, …
 *                       4:memory:/a/b      version 1: /sys/fs/cgroup/memory/a/b, …
 *
 * In a container the path may be that of the host, which is not mounted there: the levels
 * that are missing are passed over, and the root is the container's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/doctor_parts.h"

#define PATH_BYTES_MAX 512

/* One hierarchy, at one level. */
struct group {
    config_read_file *read_file;
    char directory[PATH_BYTES_MAX];
    size_t mount_length; /* of the directory, the part that is the root */
};

struct mount {
    const char *path;
    const char *marker; /* a file of every directory in it, the root's too */
    bool second;        /* version 2: one hierarchy for all controllers */
};

static const struct mount mounts[] = {
    {"/sys/fs/cgroup", "cgroup.controllers", true},
    {"/sys/fs/cgroup/unified", "cgroup.controllers", true},
    {"/sys/fs/cgroup", "cgroup.clone_children", false},
};

#define MOUNT_COUNT (sizeof(mounts) / sizeof(mounts[0]))

/* The path on the line of /proc/self/cgroup that names the controller; "" is version 2. */
static bool find_path(const char *text, const char *controller, char *dst, size_t size)
{
    char wanted[32];
    snprintf(wanted, sizeof(wanted), ",%s,", controller);
    while (*text != '\0') {
        const char *names = strchr(text, ':');
        const char *path = names != NULL ? strchr(names + 1, ':') : NULL;
        if (path == NULL) {
            return false;
        }
        char list[128];
        snprintf(list, sizeof(list), ",%.*s,", (int)(path - names - 1), names + 1);
        size_t length = strcspn(path, "\n");
        if (strstr(list, wanted) != NULL) {
            snprintf(dst, size, "%.*s", (int)length - 1, path + 1);
            return length <= size;
        }
        text = path + length + (path[length] == '\n');
    }
    return false;
}

static uint64_t read_number(const struct group *group, const char *name, unsigned n)
{
    char path[PATH_BYTES_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", group->directory, name);
    return doctor__read_number(group->read_file, path, n);
}

/* open_group - where this process is in the controller's hierarchy; false when it is not mounted. */
static bool open_group(struct group *group, const struct mount *mount, const char *controller)
{
    char path[PATH_BYTES_MAX / 2], marker[PATH_BYTES_MAX + 64], ignored[256];
    char *text = doctor__read_text(group->read_file, "/proc/self/cgroup");
    bool found =
        text != NULL && find_path(text, mount->second ? "" : controller, path, sizeof(path));
    free(text);
    if (!found) {
        return false;
    }
    snprintf(group->directory, sizeof(group->directory), "%s%s%s", mount->path,
             mount->second ? "" : "/", mount->second ? "" : controller);
    group->mount_length = strlen(group->directory);
    snprintf(marker, sizeof(marker), "%s/%s", group->directory, mount->marker);
    ssize_t marked = group->read_file(marker, ignored, sizeof(ignored));
    if (strcmp(path, "/") != 0) {
        snprintf(group->directory + group->mount_length,
                 sizeof(group->directory) - group->mount_length, "%s", path);
    }
    return marked >= 0 || marked == -EFBIG;
}

/* climb - to the parent; false at the root. */
static bool climb(struct group *group)
{
    char *slash = strrchr(group->directory + group->mount_length, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* Page cache that nobody uses is given back before the limit hurts. */
static uint64_t idle_cache(const struct group *group, const char *key)
{
    char path[PATH_BYTES_MAX + 64];
    snprintf(path, sizeof(path), "%s/memory.stat", group->directory);
    char *text = doctor__read_text(group->read_file, path);
    uint64_t bytes = text != NULL ? doctor__find_number(text, key) : 0;
    free(text);
    return doctor__is_known(bytes) ? bytes : 0;
}

static void read_memory(struct doctor_host *host, struct group *group, bool second)
{
    do {
        uint64_t max = read_number(group, second ? "memory.max" : "memory.limit_in_bytes", 0);
        if (!doctor__is_known(max)) {
            continue;
        }
        uint64_t used = read_number(group, second ? "memory.current" : "memory.usage_in_bytes", 0);
        uint64_t cache = idle_cache(group, second ? "inactive_file " : "total_inactive_file ");
        used = doctor__is_known(used) ? used : 0;
        used = used > cache ? used - cache : 0;
        uint64_t left = max > used ? max - used : 0;
        if (!doctor__is_known(host->group_memory_left) || left < host->group_memory_left) {
            host->group_memory_left = left;
            host->group_memory_max = max;
        }
    } while (climb(group));
}

static void read_pids(struct doctor_host *host, struct group *group)
{
    do {
        uint64_t max = read_number(group, "pids.max", 0);
        if (!doctor__is_known(max)) {
            continue;
        }
        uint64_t present = read_number(group, "pids.current", 0);
        present = doctor__is_known(present) ? present : 0;
        uint64_t left = max > present ? max - present : 0;
        if (!doctor__is_known(host->group_pids_left) || left < host->group_pids_left) {
            host->group_pids_left = left;
            host->group_pids_max = max;
        }
    } while (climb(group));
}

static void read_processors(struct doctor_host *host, struct group *group, bool second)
{
    do {
        uint64_t quota = read_number(group, second ? "cpu.max" : "cpu.cfs_quota_us", 0);
        uint64_t period =
            second ? read_number(group, "cpu.max", 1) : read_number(group, "cpu.cfs_period_us", 0);
        if (doctor__is_known(quota) && doctor__is_known(period) && period > 0) {
            host->group_processor_milli =
                doctor__lower_of(host->group_processor_milli, quota * 1000 / period);
        }
    } while (climb(group));
}

/* Where the hierarchy is there and sets nothing, there is no limit. */
static void seen(uint64_t *number)
{
    *number = *number == DOCTOR_UNKNOWN ? DOCTOR_NO_LIMIT : *number;
}

void doctor__group_read(struct doctor_host *host, config_read_file *read_file)
{
    host->group_memory_max = host->group_memory_left = DOCTOR_UNKNOWN;
    host->group_pids_max = host->group_pids_left = DOCTOR_UNKNOWN;
    host->group_processor_milli = DOCTOR_UNKNOWN;
    for (size_t i = 0; i < MOUNT_COUNT; i++) {
        struct group group = {.read_file = read_file};
        bool second = mounts[i].second;
        if (open_group(&group, &mounts[i], "memory")) {
            read_memory(host, &group, second);
            seen(&host->group_memory_max);
            seen(&host->group_memory_left);
        }
        if (open_group(&group, &mounts[i], "pids")) {
            read_pids(host, &group);
            seen(&host->group_pids_max);
            seen(&host->group_pids_left);
        }
        if (open_group(&group, &mounts[i], "cpu")) {
            read_processors(host, &group, second);
            seen(&host->group_processor_milli);
        }
    }
}
