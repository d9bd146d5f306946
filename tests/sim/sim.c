/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - run seeds, each in a process of its own, and say which fail.
 *
 *   sim [--seeds=1000] [--from=1] [--jobs=2] [--profile=calm|network|scarce|drains|storm]
 *   sim --seed=42            that one, in this process: what it prints and dies of is seen
 *   sim --hashes ...         a line a seed: its number and the hash of its run
 *   sim --first ...          no more seeds once one has failed
 *
 * Exit code 0, 1 when a seed failed. SIM_TRACE=1 prints what happens.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define JOBS_MAX 16
#define SEED_TIMEOUT_S 60

static const char *const profiles[SIM_PROFILES] = {"calm", "network", "scarce", "drains", "storm"};

struct options {
    uint64_t seeds, from;
    unsigned jobs;
    int profile;
    bool one, hashes, first;
};

/* One seed at work in a child. */
struct job {
    pid_t child; /* 0: none */
    uint64_t seed;
    struct sim_report *report; /* shared with the child */
};

static struct sim_report total;

/* ------------------------------------------------------------ one seed */

static void run_wave(bool drains)
{
    uint64_t leaves_ns = kernel_now_ns() + kernel_random(4 * NS_PER_S);
    unsigned wave = 4 + (unsigned)kernel_random(kernel_random(2) == 0 ? 12 : 50);
    crowd_come(wave);
    while (!crowd_gone()) {
        sim_step();
        if (drains && sim_world.phase == PHASE_SERVING && kernel_now_ns() >= leaves_ns) {
            sim_leave(kernel_random(2) * kernel_random(NS_PER_S));
        }
    }
}

static void run_seed(uint64_t seed, int profile, struct sim_report *report)
{
    trace_into(report);
    sim_open(seed, profile);
    bool drains = sim_world.profile == SIM_DRAINS ||
                  (sim_world.profile == SIM_STORM && kernel_random(2) == 0);
    unsigned waves = 1 + (unsigned)kernel_random(2);
    for (unsigned wave = 1; wave <= waves; wave++) {
        bool last = drains && wave == waves;
        run_wave(last);
        if (!last) {
            sim_rest();
        }
    }
    sim_close();
    crowd_free();
    sim_note("end", kernel_random(UINT64_MAX), drive_turns(), kernel_now_ns());
}

/* ------------------------------------------------------------ many */

static struct sim_report *report_new(void)
{
    void *memory = mmap(NULL, sizeof(struct sim_report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        abort();
    }
    return memory;
}

static void begin(struct job *job, uint64_t seed, const struct options *options)
{
    memset(job->report, 0, sizeof(*job->report));
    job->seed = seed;
    (void)fflush(stdout);
    job->child = fork();
    if (job->child < 0) {
        abort();
    }
    if (job->child == 0) {
        struct rlimit no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)alarm(SEED_TIMEOUT_S);
        run_seed(seed, options->profile, job->report);
        (void)fflush(stdout);
        exit(0);
    }
}

static void add_up(const struct sim_report *report)
{
    total.events += report->events;
    for (const struct sim_figure *figure = report->figures;
         figure < report->figures + SIM_FIGURES && figure->name[0] != '\0'; figure++) {
        struct sim_figure *sum = total.figures;
        while (sum->name[0] != '\0' && strcmp(sum->name, figure->name) != 0) {
            sum++;
        }
        memcpy(sum->name, figure->name, sizeof(sum->name));
        sum->count += figure->count;
    }
}

/* end - what became of it; returns true when it passed. */
static bool end(struct job *job, int status, const struct options *options)
{
    job->child = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        add_up(job->report);
        if (options->hashes) {
            printf("%" PRIu64 " %016" PRIx64 "\n", job->seed, job->report->hash);
        }
        return true;
    }
    bool timeout = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    fprintf(stderr,
            "sim: seed %" PRIu64 " failed (%s %d); again with: make sim SEED=%" PRIu64 "%s%s\n",
            job->seed,
            timeout               ? "timeout,"
            : WIFSIGNALED(status) ? "signal"
                                  : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), job->seed,
            options->profile >= 0 ? " PROFILE=" : "",
            options->profile >= 0 ? profiles[options->profile] : "");
    return false;
}

/* wait_one - for any of the children. Returns whether it passed. */
static bool wait_one(struct job *jobs, const struct options *options)
{
    int status;
    pid_t child = wait(&status);
    for (unsigned i = 0; i < options->jobs; i++) {
        if (jobs[i].child == child) {
            return end(&jobs[i], status, options);
        }
    }
    abort();
}

static uint64_t run_all(const struct options *options)
{
    struct job jobs[JOBS_MAX] = {{0}};
    uint64_t failed = 0, next = options->from, last = options->from + options->seeds;
    unsigned running = 0;
    for (unsigned i = 0; i < options->jobs; i++) {
        jobs[i].report = report_new();
    }
    while (next < last || running > 0) {
        for (unsigned i = 0; i < options->jobs && next < last; i++) {
            if (jobs[i].child == 0) {
                begin(&jobs[i], next++, options);
                running++;
            }
        }
        failed += !wait_one(jobs, options);
        running--;
        if (failed > 0 && options->first) {
            last = next;
        }
    }
    return failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sim_figure *)a)->name, ((const struct sim_figure *)b)->name);
}

static void print_figures(void)
{
    size_t count = 0;
    while (count < SIM_FIGURES && total.figures[count].name[0] != '\0') {
        count++;
    }
    qsort(total.figures, count, sizeof(total.figures[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        printf("  %10" PRIu64 " %s\n", total.figures[i].count, total.figures[i].name);
    }
}

static bool parse(struct options *options, const char *argument)
{
    if (sscanf(argument, "--seeds=%" SCNu64, &options->seeds) == 1 ||
        sscanf(argument, "--from=%" SCNu64, &options->from) == 1) {
        return true;
    }
    if (sscanf(argument, "--jobs=%u", &options->jobs) == 1) {
        return options->jobs > 0 && options->jobs <= JOBS_MAX;
    }
    if (sscanf(argument, "--seed=%" SCNu64, &options->from) == 1) {
        options->one = true;
        return true;
    }
    if (strcmp(argument, "--hashes") == 0) {
        options->hashes = true;
        return true;
    }
    if (strcmp(argument, "--first") == 0) {
        options->first = true;
        return true;
    }
    for (int i = 0; strncmp(argument, "--profile=", 10) == 0 && i < SIM_PROFILES; i++) {
        if (strcmp(argument + 10, profiles[i]) == 0) {
            options->profile = i;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct options options = {.seeds = 1000, .from = 1, .jobs = 2, .profile = -1};
    struct timespec began, ended;
    for (int i = 1; i < argc; i++) {
        if (!parse(&options, argv[i])) {
            fprintf(stderr, "sim: what is %s?\n", argv[i]);
            return 2;
        }
    }
    if (options.one) {
        run_seed(options.from, options.profile, &total);
        printf("sim: seed %" PRIu64 " (%s) passed, %" PRIu64 " events, hash %016" PRIx64 "\n",
               options.from, profiles[sim_world.profile], total.events, total.hash);
        return 0;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    uint64_t failed = run_all(&options);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    if (!options.hashes) {
        print_figures();
        printf("sim: %" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " failed, %" PRIu64
               " events, %.1f s\n",
               options.seeds, options.from, failed, total.events,
               (double)(ended.tv_sec - began.tv_sec) +
                   (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
    }
    return failed > 0;
}
