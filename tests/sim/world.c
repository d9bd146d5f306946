/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - one life of a server: opened as app/process.c and servers.c do it, drained
 * as run.c does it, and looked into where it rests.
 *
 * Only what the main thread does is written anew here (its loop sleeps on descriptors);
 * everything else is the server's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/limits.h"
#include "app/servers.h"
#include "base/log.h"
#include "client.h"
#include "kernel_parts.h"

/* Longer than all that the server keeps for a while: 60 s of keep-alive, 30 s in the pool. */
#define REST_NS (200 * NS_PER_S)
/* A drain ends in this time, whatever the clients do. */
#define DRAIN_NS (120 * NS_PER_S)

struct sim_world sim_world;

static struct {
    unsigned descriptors;
    size_t live; /* on the heap, without what grows and stays */
} baseline;

/* ------------------------------------------------------------ knobs of a seed */

static unsigned one_of(unsigned a, unsigned b, unsigned c)
{
    const unsigned choices[] = {a, b, c};
    return choices[kernel_random(3)];
}

static void draw_timing(void)
{
    kernel_knobs.late_percent = (unsigned)kernel_random(60);
    kernel_knobs.chop_percent = (unsigned)kernel_random(60);
    kernel_knobs.race_percent = (unsigned)kernel_random(100);
    kernel_knobs.break_percent = one_of(0, 10, 60);
    kernel_knobs.recv_cap = kernel_random(3) != 0;
    kernel_knobs.ghost_percent = one_of(0, 0, 10);
    kernel_knobs.slow_percent = one_of(0, 0, 5);
    kernel_knobs.slow_ns = 1 + kernel_random(30 * NS_PER_MS);
    kernel_knobs.stall_percent = one_of(0, 0, 20);
    kernel_knobs.deaf_shutdown = kernel_random(8) == 0;
}

static void draw_queues(void)
{
    kernel_knobs.buffers = 1 + (unsigned)kernel_random(24);
    kernel_knobs.sq_entries = 1 + (unsigned)kernel_random(16);
    kernel_knobs.cq_entries = 2 + (unsigned)kernel_random(30);
}

static void draw_rates(void)
{
    struct sim_rates *rates = &sim_world.rates;
    bool network = sim_world.profile == SIM_NETWORK || sim_world.profile == SIM_STORM;
    bool scarce = sim_world.profile == SIM_SCARCE || sim_world.profile == SIM_STORM;
    *rates = (struct sim_rates){.calls = one_of(0, 10, 80)};
    if (network) {
        rates->severs = one_of(5, 20, 60);
    }
    if (scarce) {
        rates->descriptors = one_of(0, 20, 200);
        rates->memory = one_of(0, 5, 50);
    }
    if (scarce || kernel_random(4) == 0) {
        draw_queues();
    }
    if (scarce && kernel_random(2) == 0) {
        sim_world.scarce = true;
        kernel_knobs.descriptors = 40 + (unsigned)kernel_random(60);
    }
}

/* ------------------------------------------------------------ open */

static ssize_t no_file(const char *path, char *dst, size_t capacity)
{
    (void)path;
    (void)dst;
    (void)capacity;
    return -2; /* -ENOENT */
}

static void load_config(void)
{
    char pool_max[64], remote[64];
    char *environment[] = {NULL};
    snprintf(pool_max, sizeof(pool_max), "--remote.pool.max=%u", one_of(0, 0, 3));
    snprintf(remote, sizeof(remote), "--remote.port=%d", sim_world.remote_is_ours ? 8085 : -1);
    char *arguments[] = {"ringspun", "--spring.profiles.active=spring,echo", pool_max, remote};
    struct config_sources sources = {.argument_count = 4,
                                     .arguments = arguments,
                                     .environment = environment,
                                     .read_file = no_file,
                                     .directory = ".",
                                     .system_directory = "."};
    struct config_error error;
    if (config_load(&sim_world.config, &sources, &error) < 0) {
        sim_fail("config_load: %s", error.text);
    }
}

static void open_calls(void)
{
    struct process *process = &sim_world.process;
    struct client_pool_setup setup = {.url = "http://127.0.0.1:8085",
                                      .bound = (unsigned)sim_world.config.remote_pool_max,
                                      .offload = &process->offload,
                                      .carriers = process->carriers,
                                      .carrier_count = process->carrier_count};
    if (client_pool_init(&process->remote_calls, &setup) < 0) {
        sim_fail("client_pool_init");
    }
    process->app.remote = &process->remote_calls;
    process->app.fanout_calls_max = limits_fanout_calls(process->total.max);
}

static void open_directory(void)
{
    struct process *process = &sim_world.process;
    struct directory_setup setup = {.entries_max = 100000, .bytes_max = 64 << 20};
    sys_random(&setup.hash_key, sizeof(setup.hash_key));
    process->app.directory = &process->directory;
    if (directory_init(&process->directory, &setup) < 0) {
        sim_fail("directory_init");
    }
}

static void open_process(void)
{
    struct process *process = &sim_world.process;
    process->config = &sim_world.config;
    process->carriers = drive_carriers();
    process->carrier_count = sim_world.carriers;
    process->app.started_ns = kernel_now_ns();
    process->app.wake_fd = sys_eventfd();
    uint64_t needed = limits_needed(servers_wanted(&sim_world.config), sim_world.carriers);
    process->total.max = (unsigned)limits_connections(kernel_knobs.descriptors, needed);
    if (servers_open(process) != 0) {
        sim_fail("servers_open");
    }
    open_calls();
    open_directory();
    servers_start(process);
}

/* what_stays - blocks on the heap that are kept for the next burst: records of ops, stacks. */
static size_t what_stays(void)
{
    size_t blocks = 0;
    for (unsigned i = 0; i < sim_world.carriers; i++) {
        const struct carrier *carrier = &drive_carriers()[i];
        blocks += carrier->ops.chunk_count + (carrier->ops.chunks != NULL) +
                  (carrier->ops.free != NULL) + (carrier->sched.stacks.free != NULL);
        for (const void *const *slab = (const void *)carrier->sched.stacks.slabs; slab != NULL;
             slab = *slab) { /* struct stack_slab is stack.c's own: it begins with next */
            blocks++;
        }
    }
    /* An entry of the clients' has one attribute that nobody else has. */
    return blocks + 2 * (size_t)atomic_load(&sim_world.process.directory.entries);
}

void sim_open(uint64_t seed, int profile)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    faults_install();
    kernel_seed(seed);
    kernel_start(0);
    sim_world.profile =
        profile >= 0 ? (enum sim_profile)profile : (enum sim_profile)kernel_random(SIM_PROFILES);
    sim_world.carriers = kernel_random(3) == 0 ? 2 + (unsigned)kernel_random(2) : 1;
    sim_world.remote_is_ours = kernel_random(2) == 0;
    sim_world.tick_ns = kernel_random(3) == 0 ? 0 : 20 * NS_PER_US;
    draw_timing();
    draw_rates();
    load_config();
    drive_start(sim_world.carriers);
    if (!sim_world.remote_is_ours) {
        upstream_open();
    }
    open_process();
    drive_run();
    baseline.descriptors = kernel_open_descriptors();
    baseline.live = memory_live() - what_stays();
    sim_world.armed = true;
}

/* ------------------------------------------------------------ life */

void sim_leave(uint64_t delay_ns)
{
    sim_note("!told to leave", delay_ns, 0, 0);
    atomic_store(&sim_world.process.app.life, LIFE_LEAVING);
    sim_world.leaving_ns = kernel_now_ns();
    sim_world.process.until_ns = sim_world.leaving_ns + delay_ns;
    sim_world.phase = PHASE_LEAVING;
}

/* advance - as run.c does. */
static void advance(void)
{
    struct process *process = &sim_world.process;
    uint64_t now_ns = kernel_now_ns();
    if (sim_world.phase == PHASE_LEAVING && now_ns >= process->until_ns) {
        sim_note("drain", 0, 0, 0);
        atomic_store(&process->app.life, LIFE_DRAINING);
        sim_world.phase = PHASE_DRAINING_FRONT;
        sim_world.draining_ns = now_ns;
        servers_drain(process, SERVER_FRONT);
    }
    if (sim_world.phase == PHASE_DRAINING_FRONT && servers_are_drained(process, SERVER_FRONT)) {
        sim_note("front drained", 0, 0, 0);
        client_pool_close(&process->remote_calls);
        sim_world.phase = PHASE_DRAINING_REMOTE;
        servers_drain(process, SERVER_REMOTE);
    }
    if (sim_world.phase == PHASE_DRAINING_REMOTE && servers_are_drained(process, SERVER_REMOTE)) {
        sim_note("drained", 0, 0, 0);
        sim_world.phase = PHASE_DRAINED;
    }
    if (sim_world.phase != PHASE_SERVING && sim_world.phase != PHASE_DRAINED &&
        now_ns > sim_world.process.until_ns + DRAIN_NS) {
        sim_fail("the drain does not end");
    }
}

/* check_step - what holds at every moment. */
static void check_step(void)
{
    const struct process *process = &sim_world.process;
    for (unsigned i = 0; i < sim_world.carriers; i++) {
        const struct carrier *carrier = &drive_carriers()[i];
        if (carrier->sched.live_count != carrier->sched.stacks.live) {
            sim_fail("%zu fibers on %zu stacks", carrier->sched.live_count,
                     carrier->sched.stacks.live);
        }
        if (carrier->ops.stale > kernel__ring_told_twice(&carrier->ring)) {
            sim_fail("a completion was for nobody");
        }
    }
    if (atomic_load(&process->total.live) > process->total.max ||
        atomic_load(&process->front.live) > process->front.max) {
        sim_fail("more connections than there are places");
    }
}

void sim_step(void)
{
    uint64_t now_ns = kernel_now_ns();
    crowd_act();
    upstream_act();
    advance();
    for (unsigned i = 0; i < sim_world.carriers; i++) {
        for (uint64_t turns = kernel_random(3); turns > 0; turns--) {
            drive_turn(i);
        }
    }
    check_step();
    uint64_t next_ns = crowd_next_ns();
    uint64_t upstream_ns = upstream_next_ns();
    next_ns = upstream_ns < next_ns ? upstream_ns : next_ns;
    if (next_ns <= now_ns || !drive_is_quiet()) {
        kernel_pass(kernel_random(sim_world.tick_ns));
        return;
    }
    uint64_t own_ns = drive_next_ns();
    next_ns = own_ns < next_ns ? own_ns : next_ns;
    if (sim_world.phase == PHASE_LEAVING && sim_world.process.until_ns < next_ns) {
        next_ns = sim_world.process.until_ns;
    }
    if (next_ns > now_ns + NS_PER_S) {
        next_ns = now_ns + NS_PER_S;
    }
    kernel_pass(next_ns > now_ns ? next_ns - now_ns : kernel_random(sim_world.tick_ns));
}

/* ------------------------------------------------------------ rest and end */

static void pass(uint64_t ns)
{
    uint64_t end_ns = kernel_now_ns() + ns;
    while (kernel_now_ns() < end_ns) {
        sim_step();
    }
}

static void check_servers_rest(void)
{
    const struct process *process = &sim_world.process;
    for (unsigned i = 0; i < process->server_count; i++) {
        const struct server *server = &process->servers[i];
        if (atomic_load(&server->limit.live) != 0) {
            sim_fail("port %u counts %u connections and has none", server->listener.port,
                     atomic_load(&server->limit.live));
        }
        for (unsigned k = 0; k < sim_world.carriers; k++) {
            if (server->setup.router == NULL ? server->echo.lanes[k].slab.live_count != 0
                                             : server->service.lanes[k].slab.live_count != 0 ||
                                                   server->service.lanes[k].desks.live_count != 0) {
                sim_fail("port %u keeps records of connections that have ended",
                         server->listener.port);
            }
        }
    }
}

static void check_carriers_rest(void)
{
    const struct process *process = &sim_world.process;
    for (unsigned i = 0; i < sim_world.carriers; i++) {
        const struct carrier *carrier = &drive_carriers()[i];
        unsigned polls = 0, acceptors = 0;
        for (unsigned k = 0; k < process->server_count; k++) {
            polls += process->servers[k].listener.acceptors[i].poll_op != NULL;
            acceptors += process->servers[k].listener.acceptors[i].fiber != NULL;
        }
        if (carrier->sched.live_count != acceptors) {
            sim_fail("%zu fibers rest on %s, which has %u acceptors", carrier->sched.live_count,
                     carrier->name, acceptors);
        }
        if (carrier->ops.live != polls + (carrier->event_op != NULL)) {
            sim_fail("%u ops are in flight on %s, of them %u polls", carrier->ops.live,
                     carrier->name, polls);
        }
        if (carrier->sched.timers.armed != 0 || atomic_load(&carrier->connections) != 0) {
            sim_fail("%s rests with %zu timers and %u connections", carrier->name,
                     (size_t)carrier->sched.timers.armed, atomic_load(&carrier->connections));
        }
    }
}

void sim_rest(void)
{
    struct process *process = &sim_world.process;
    struct sim_rates rates = sim_world.rates;
    sim_world.rates = (struct sim_rates){0}; /* what is kept is not to depend on luck */
    pass(REST_NS);
    sim_world.rates = rates;
    check_servers_rest();
    check_carriers_rest();
    if (process->remote_calls.open != 0 || !list_empty(&process->remote_calls.waiters) ||
        atomic_load(&process->app.fanout_calls) != 0 || atomic_load(&process->total.live) != 0) {
        sim_fail("%u connections to the remote, %u calls of fan-outs, %u connections at rest",
                 process->remote_calls.open, atomic_load(&process->app.fanout_calls),
                 atomic_load(&process->total.live));
    }
    if (kernel_buffers_out() != 0 || kernel_open_descriptors() != baseline.descriptors) {
        sim_fail("%u buffers are out, %u descriptors open (%u at first)", kernel_buffers_out(),
                 kernel_open_descriptors(), baseline.descriptors);
    }
    if (memory_live() - what_stays() != baseline.live) {
        sim_fail("%zu blocks on the heap, %zu at first", memory_live() - what_stays(),
                 baseline.live);
    }
    sim_count("rests");
}

void sim_close(void)
{
    struct process *process = &sim_world.process;
    if (sim_world.phase == PHASE_SERVING) {
        sim_leave(0);
    }
    while (sim_world.phase != PHASE_DRAINED || !crowd_gone()) {
        sim_step();
    }
    upstream_close();
    pass(REST_NS);
    faults_peace();
    drive_run();
    servers_close(process);
    client_pool_fini(&process->remote_calls);
    directory_fini(&process->directory);
    sys_close(process->app.wake_fd);
    drive_stop();
    config_fini(&sim_world.config);
    if (memory_live() != 0 || memory_mapped() != 0) {
        sim_fail("%zu blocks on the heap and %zu mapped bytes are left", memory_live(),
                 memory_mapped());
    }
}
