/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - a deterministic simulation of the whole server: its own code above ring.c and
 * sys.c, on the scripted kernel of tests/unit, with simulated clients, upstream and clock.
 *
 *   clients --+                               +-- own remote (port 8085)
 *             +--> kernel <--> the server <---+
 *   faults  --+    virtual time               +-- or upstream.c
 *
 * One seed is one life of a server, from its start to the end of its drain, in a
 * process of its own. Whatever decides is drawn from the seed: no address, no real
 * time and no thread's luck (several carriers are turned one after the other). So a
 * seed repeats its run step by step, which a hash over all that happened shows.
 *
 *   seed -> profile, knobs -> open -> steps: clients act, carriers turn, time passes
 *        -> rest: all is given back -> steps ... -> drain -> closed: nothing is left
 *
 * Every answer is checked when it comes, what has not come in time when it is due.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/config.h"
#include "app/process.h"
#include "base/time.h"
#include "kernel.h"

#define SIM_APP_PORT 8080
#define SIM_REMOTE_PORT 8085
#define SIM_GREETER_PORT 10000
#define SIM_ECHO_PORT 10007

/* What a seed is mostly about. */
enum sim_profile {
    SIM_CALM,    /* odd timing and pieces, nothing fails */
    SIM_NETWORK, /* resets, errors of single calls, a bad upstream */
    SIM_SCARCE,  /* descriptors, memory, buffers, short queues */
    SIM_DRAINS,  /* drained while all is at work */
    SIM_STORM,   /* all of it */
    SIM_PROFILES
};

/* ------------------------------------------------------------ the world (world.c) */

/* How often the faults of faults.c come, per mille of the calls. */
struct sim_rates {
    unsigned calls;       /* errors that a call may be repeated after */
    unsigned severs;      /* connections that are reset by the network */
    unsigned descriptors; /* -EMFILE and its like */
    unsigned memory;      /* allocations that fail */
};

struct sim_world {
    enum sim_profile profile;
    unsigned carriers;
    bool remote_is_ours;
    bool scarce;      /* clients may find no place */
    uint64_t tick_ns; /* a step takes so much time at most; 0: time only passes when all rests */
    struct sim_rates rates;
    struct process process;
    struct config config;
    enum phase phase;
    uint64_t leaving_ns;  /* SIGTERM came; 0: not yet */
    uint64_t draining_ns; /* since when nothing new is accepted; 0: it is */
    /* how many faults there have been, for what may be excused by them */
    unsigned memory_faults;
    unsigned descriptor_faults;
    unsigned upstream_faults; /* between the server and its remote */
    uint64_t shortage_ns;     /* when the last one of memory or descriptors came */
    bool armed;               /* faults are made */
};

extern struct sim_world sim_world;

/* sim_open - a world of that seed, serving. profile: of enum sim_profile, or -1: by the seed. */
void sim_open(uint64_t seed, int profile);

/* sim_step - clients and upstream act, carriers turn, time passes. */
void sim_step(void);

/* sim_leave - SIGTERM, as app/run.c has it. */
void sim_leave(uint64_t delay_ns);

/* sim_rest - nobody is connected: pass so much time that all must be back, and see that it is. */
void sim_rest(void);

/* sim_close - drain if it does not yet, to the end; nothing is left. */
void sim_close(void);

/* ------------------------------------------------------------ faults (faults.c), memory (memory.c) */

/* faults_install - the kernel's hooks. */
void faults_install(void);

/* faults_peace - from now on no fault is made. */
void faults_peace(void);

/* memory_live, memory_mapped - blocks of the server's on the heap, bytes that it has mapped. */
size_t memory_live(void);
size_t memory_mapped(void);

/* ------------------------------------------------------------ what happened (trace.c) */

/* sim_note - into the hash, and with SIM_TRACE=1 on stdout. A name that begins with '!' is a fault. */
void sim_note(const char *what, uint64_t a, uint64_t b, uint64_t c);

/* sim_count - a figure of the report, by name. */
void sim_count(const char *what);

/* sim_fail - this seed has failed: say so and abort. */
#define sim_fail kernel_violation

#define SIM_FIGURES 96

struct sim_figure {
    char name[32];
    uint64_t count;
};

struct sim_report {
    uint64_t hash;
    uint64_t events;
    struct sim_figure figures[SIM_FIGURES];
};

/* trace_into - where the figures go, shared with the parent. */
void trace_into(struct sim_report *report);

/* ------------------------------------------------------------ upstream (upstream.c) */

void upstream_open(void);

/* upstream_act - accept, read, answer. */
void upstream_act(void);

/* upstream_next_ns - when it has something to do by itself. */
uint64_t upstream_next_ns(void);

/* upstream_close - all its connections end, and nobody is accepted any more. */
void upstream_close(void);

/* upstream_has - the body that was sent whole as the answer to that path; NULL: none. */
const char *upstream_has(const char *path);

/* upstream_good, upstream_bad - how many answers to that path were sent whole; how many calls of it had another fate. */
unsigned upstream_good(const char *path);
unsigned upstream_bad(const char *path);

/* upstream_trouble - times that its port has refused or hung so far. */
unsigned upstream_trouble(void);

#endif
