/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_connect.c - from a URL to a connected socket. Called by client_pool.c.
 */
#include "http/client_connect.h"

#include <errno.h>
#include <stdio.h>

#include "base/slice.h"
#include "http/url.h"
#include "ring/sys.h"

int client_set_url(struct client_pool *pool, const char *text)
{
    struct url url;
    int result = url_parse(slice_of(text), &url);
    if (result < 0 || url.host.length > RESOLVE_HOST_MAX || url.path.length > CLIENT_PATH_MAX) {
        return -EINVAL;
    }
    snprintf(pool->host, sizeof(pool->host), "%.*s", (int)url.host.length, url.host.at);
    snprintf(pool->authority, sizeof(pool->authority), "%.*s", (int)url.authority.length,
             url.authority.at);
    snprintf(pool->path, sizeof(pool->path), "%.*s", (int)url.path.length, url.path.at);
    pool->port = url.port;
    return 0;
}

static void remember(struct client_pool *pool, const struct resolve_result *addresses)
{
    pthread_mutex_lock(&pool->mutex);
    pool->addresses = *addresses;
    pthread_mutex_unlock(&pool->mutex);
}

static void recall(struct client_pool *pool, struct resolve_result *addresses)
{
    pthread_mutex_lock(&pool->mutex);
    *addresses = pool->addresses;
    pthread_mutex_unlock(&pool->mutex);
}

void client_forget_addresses(struct client_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->addresses.count = 0;
    atomic_fetch_add(&pool->generation, 1);
    pthread_mutex_unlock(&pool->mutex);
}

/* try_each - connect to the addresses in turn; the time left is shared out, so that a dead one does not eat it all. */
static int try_each(const struct resolve_result *addresses, struct conn *conn, uint64_t deadline_ns)
{
    int result = -ENOENT;
    for (size_t i = 0; i < addresses->count; i++) {
        uint64_t now_ns = sys_clock_ns();
        if (now_ns >= deadline_ns) {
            return -ETIMEDOUT;
        }
        uint64_t share_ns = (deadline_ns - now_ns) / (addresses->count - i);
        result = conn_connect(conn, &addresses->addresses[i], now_ns + share_ns);
        if (result == 0 || result == -ECANCELED || result == -EMFILE || result == -ENFILE) {
            return result;
        }
    }
    return result;
}

/* is_settled - asking the resolver again would not better it. */
static bool is_settled(int result)
{
    return result == 0 || result == -ECANCELED || result == -EMFILE || result == -ENFILE;
}

int client_connect(struct client_pool *pool, struct conn *conn, uint64_t timeout_ns)
{
    uint64_t now_ns = sys_clock_ns();
    uint64_t deadline_ns = now_ns + timeout_ns;
    struct resolve_result addresses;

    recall(pool, &addresses);
    if (addresses.count > 0) {
        struct sys_address numeric;
        bool final = sys_parse_address(pool->host, pool->port, &numeric) == 1;
        /* A host that has moved does not refuse at its old address, it says nothing: half of the
         * time is kept for the new one. */
        int result = try_each(&addresses, conn, final ? deadline_ns : now_ns + timeout_ns / 2);
        if (is_settled(result) || final) {
            return result;
        }
        client_forget_addresses(pool);
    }
    struct resolve_target target = {.host = pool->host, .port = pool->port};
    int result = resolve(pool->setup.offload, &target, deadline_ns, &addresses);
    if (result < 0) {
        return result;
    }
    result = try_each(&addresses, conn, deadline_ns);
    if (result == 0) {
        remember(pool, &addresses);
    }
    return result;
}
