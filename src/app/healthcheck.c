/* SPDX-License-Identifier: Apache-2.0 */
/*
 * healthcheck.c - resolve, connect, ask, read the answer, on the calling thread.
 *
 * Called by main. Sockets are non-blocking and waited for with poll(2) against one
 * deadline; parsing and writing are those of http/. A name is resolved by a
 * thread of its own, since getaddrinfo(3) takes no deadline.
 */
#include "app/healthcheck.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/json.h"
#include "base/json.h"
#include "base/must.h"
#include "base/time.h"
#include "http/parser.h"
#include "http/url.h"
#include "http/writer.h"
#include "ring/sys.h"

#define EXIT_UP 0
#define EXIT_DOWN 1
#define EXIT_USAGE 2

#define HEALTH_PATH "/actuator/health"
#define URL_MAX 128 /* bytes of the one that is made here */
#define ADDRESSES_MAX 8
#define HEAD_BYTES_MAX 16384
#define BODY_BYTES_MAX 65536
#define ARENA_BYTES_MAX ((size_t)1 << 20)
#define REQUEST_BYTES_EXTRA 128
#define RECEIVE_BYTES 1024
#define SHOWN_MAX 40 /* bytes of a status that a message shows */

struct check {
    const char *text; /* the URL as given */
    struct url url;
    uint64_t deadline_ns;
    struct arena arena;
    struct sys_address addresses[ADDRESSES_MAX];
    int address_count;
    char why[256]; /* not up: the cause */
};

static int PRINTF_LIKE(2, 3) fail(struct check *check, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(check->why, sizeof(check->why), format, values);
    va_end(values);
    return -1;
}

static int fail_late(struct check *check, const char *what)
{
    return fail(check, "timed out: %s within %u s", what, HEALTHCHECK_TIMEOUT_MS / 1000);
}

/* ---------------------------------------------------------------- the address */

/* Asked by one thread, waited for by another. */
struct question {
    char host[256];
    uint16_t port;
    int done_fd; /* an eventfd */
    int answer;
    struct sys_address addresses[ADDRESSES_MAX];
};

static void *resolve(void *argument)
{
    struct question *question = argument;
    question->answer =
        sys_resolve(question->host, question->port, question->addresses, ADDRESSES_MAX);
    sys_eventfd_signal(question->done_fd);
    return NULL;
}

/*
 * resolve_name - takes the question, and frees it but for one: without an answer in time
 * it stays with its thread, and the process ends with both.
 */
static int resolve_name(struct check *check, struct question *question)
{
    int result = -1;
    pthread_t thread;
    question->done_fd = sys_eventfd();
    if (question->done_fd < 0) {
        result = fail(check, "no descriptor to resolve %s with", question->host);
        goto undo_question;
    }
    if (pthread_create(&thread, NULL, resolve, question) != 0) {
        result = fail(check, "no thread to resolve %s with", question->host);
        goto undo_descriptor;
    }
    if (sys_poll(question->done_fd, POLLIN, check->deadline_ns) <= 0) {
        pthread_detach(thread);
        return fail_late(check, "the name was not resolved");
    }
    pthread_join(thread, NULL);
    if (question->answer <= 0) {
        result = fail(check, "cannot resolve %s: %s", question->host,
                      question->answer == -ENOENT ? "there is no such name"
                                                  : "the resolver failed for now");
    } else {
        memcpy(check->addresses, question->addresses, sizeof(check->addresses));
        check->address_count = question->answer;
        result = 0;
    }
undo_descriptor:
    sys_close(question->done_fd);
undo_question:
    free(question);
    return result;
}

static int find_addresses(struct check *check)
{
    struct question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        return fail(check, "no memory");
    }
    must(check->url.host.length < sizeof(question->host)); /* url_parse: 253 at most */
    memcpy(question->host, check->url.host.at, check->url.host.length);
    question->port = check->url.port;
    if (sys_parse_address(question->host, check->url.port, &check->addresses[0]) != 1) {
        return resolve_name(check, question);
    }
    check->address_count = 1;
    free(question);
    return 0;
}

/* ---------------------------------------------------------------- the connection */

/* connect_one - a connected socket; -ETIMEDOUT and the like. */
static int connect_one(const struct sys_address *address, uint64_t deadline_ns)
{
    int fd = sys_socket(address, true);
    if (fd < 0) {
        return fd;
    }
    int result = sys_connect(fd, address);
    if (result == -EINPROGRESS) {
        result = sys_poll(fd, POLLOUT, deadline_ns) > 0 ? sys_socket_error(fd) : -ETIMEDOUT;
    }
    if (result < 0) {
        sys_close(fd);
        return result;
    }
    return fd;
}

/* The addresses in turn; the time left is shared out, so that a dead one does not eat it all. */
static int connect_any(struct check *check)
{
    int fd = -ETIMEDOUT;
    for (int i = 0; i < check->address_count; i++) {
        uint64_t now_ns = sys_clock_ns();
        uint64_t left_ns = check->deadline_ns > now_ns ? check->deadline_ns - now_ns : 0;
        uint64_t share_ns = left_ns / (uint64_t)(check->address_count - i);
        fd = connect_one(&check->addresses[i], now_ns + share_ns);
        if (fd >= 0) {
            return fd;
        }
    }
    switch (fd) {
    case -ETIMEDOUT:
        return fail_late(check, "no connection");
    case -ECONNREFUSED:
        return fail(check, "connection refused: nobody listens on port %u", check->url.port);
    default:
        return fail(check, "cannot connect: %s", strerrordesc_np(-fd));
    }
}

/* ---------------------------------------------------------------- the exchange */

static int send_request(struct check *check, int fd)
{
    struct slice path = check->url.path.length > 0 ? check->url.path : SLICE(HEALTH_PATH);
    size_t capacity = check->url.authority.length + path.length + REQUEST_BYTES_EXTRA;
    char *request = arena_alloc(&check->arena, capacity);
    if (request == NULL) {
        return fail(check, "no memory");
    }
    size_t length = writer_request(request, capacity, check->url.authority, path);
    must(length > 0); /* url_parse lets nothing through that cannot stand there */
    while (length > 0) {
        ssize_t sent = sys_send(fd, request, length);
        if (sent == -EAGAIN) {
            if (sys_poll(fd, POLLOUT, check->deadline_ns) <= 0) {
                return fail_late(check, "the request did not leave");
            }
            continue;
        }
        if (sent < 0) {
            return fail(check, "the server closed the connection");
        }
        request += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int fail_answer(struct check *check, const struct parser *parser)
{
    if (parser->refusal.message != NULL) {
        return fail(check, "the answer is not HTTP: %s", parser->refusal.message);
    }
    return fail(check, "the server closed the connection without an answer");
}

/* feed_all - bytes that came, to their end. Returns 1 complete; 0 more is due; -1 refused. */
static int feed_all(struct check *check, struct parser *parser, struct slice bytes)
{
    while (bytes.length > 0) {
        size_t consumed;
        switch (parser_feed(parser, bytes, &consumed)) {
        case PARSER_MORE:
        case PARSER_HEAD:
            break;
        case PARSER_MESSAGE:
            return 1;
        case PARSER_REFUSED:
            return fail_answer(check, parser);
        }
        bytes.at += consumed;
        bytes.length -= consumed;
    }
    return 0;
}

static int read_answer(struct check *check, struct parser *parser, int fd)
{
    for (;;) {
        char bytes[RECEIVE_BYTES];
        ssize_t got = sys_recv(fd, bytes, sizeof(bytes));
        /* Asked after each piece, or a server that sends without end would be read without end. */
        if (sys_clock_ns() >= check->deadline_ns ||
            (got == -EAGAIN && sys_poll(fd, POLLIN, check->deadline_ns) <= 0)) {
            return fail_late(check, "no complete answer");
        }
        if (got == -EAGAIN) {
            continue;
        }
        if (got < 0) {
            return fail(check, "the connection broke: %s", strerrordesc_np((int)-got));
        }
        if (got == 0) {
            return parser_finish(parser) == PARSER_MESSAGE ? 0 : fail_answer(check, parser);
        }
        int fed = feed_all(check, parser, (struct slice){.at = bytes, .length = (size_t)got});
        if (fed != 0) {
            return fed < 0 ? -1 : 0;
        }
    }
}

/* ---------------------------------------------------------------- the answer */

struct found {
    char status[SHOWN_MAX * JSON_ESCAPE_GROWTH + 1]; /* escaped; empty: there is none */
    bool up;
};

static int note_status(void *context, const struct json_leaf *leaf)
{
    struct found *found = context;
    if (strcmp(leaf->key, "status") == 0 && leaf->kind == JSON_STRING) {
        struct slice shown = leaf->value;
        shown.length = shown.length < SHOWN_MAX ? shown.length : SHOWN_MAX;
        size_t length = json_escape(found->status, sizeof(found->status) - 1, shown);
        must(length < sizeof(found->status));
        found->status[length] = '\0';
        found->up = slice_equal(leaf->value, SLICE("UP"));
    }
    return 0;
}

static int judge(struct check *check, const struct http_reply *reply)
{
    struct json_error ignored;
    struct found found = {.up = false};
    int result = json_flatten(reply->body, note_status, &found, &ignored);
    if (result < 0 || found.status[0] == '\0') {
        return fail(check, "answered %d, and its body tells no status", reply->status);
    }
    if (reply->status != 200 || !found.up) {
        return fail(check, "answered %d %s%s", reply->status, found.status,
                    reply->status == 503 ? ": it takes no new work" : "");
    }
    return 0;
}

static int ask(struct check *check)
{
    if (find_addresses(check) < 0) {
        return -1;
    }
    int fd = connect_any(check);
    if (fd < 0) {
        return -1;
    }
    struct parser_limits limits = {.head_bytes_max = HEAD_BYTES_MAX,
                                   .body_bytes_max = BODY_BYTES_MAX};
    struct parser parser;
    parser_init_replies(&parser, &limits, &check->arena);
    parser.keep_body = true;
    int result = send_request(check, fd);
    if (result == 0) {
        result = read_answer(check, &parser, fd);
    }
    if (result == 0) {
        result = judge(check, &parser.reply);
    }
    sys_close(fd);
    return result;
}

/* own_url - where the server of this configuration answers; -EINVAL: its port is any free one. */
static int own_url(const struct config *config, char dst[URL_MAX])
{
    const char *address = config->server_address;
    if (config->server_port == 0) {
        return -EINVAL;
    }
    if (address == NULL || strcmp(address, "0.0.0.0") == 0) {
        address = "127.0.0.1";
    } else if (strcmp(address, "::") == 0) {
        address = "::1";
    }
    int length =
        snprintf(dst, URL_MAX, strchr(address, ':') != NULL ? "http://[%s]:%d%s" : "http://%s:%d%s",
                 address, config->server_port, HEALTH_PATH);
    must(length > 0 && length < URL_MAX);
    return 0;
}

static int PRINTF_LIKE(2, 3) say(int fd, const char *format, ...)
{
    char line[640];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    must(length > 0);
    size_t end = (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1;
    line[end - 1] = '\n'; /* also where it was cut */
    return sys_write_all(fd, line, end);
}

int healthcheck(const struct config *config)
{
    char own[URL_MAX];
    struct check check = {.text = config->health_url != NULL ? config->health_url : own,
                          .deadline_ns = sys_clock_ns() + HEALTHCHECK_TIMEOUT_MS * NS_PER_MS};
    if (config->health_url == NULL && own_url(config, own) < 0) {
        (void)say(2, "ringspun: server.port=0 is any free port: name the server with --url=URL\n");
        return EXIT_USAGE;
    }
    int parsed = url_parse(slice_of(check.text), &check.url);
    must(parsed == 0); /* made here, or checked by the configuration */
    arena_init(&check.arena, NULL, 0, ARENA_BYTES_MAX);
    int result = ask(&check);
    arena_reset(&check.arena);
    if (result < 0) {
        (void)say(2, "ringspun: %s: %s\n", check.text, check.why);
        return EXIT_DOWN;
    }
    return say(1, "UP %s\n", check.text) < 0 ? EXIT_DOWN : EXIT_UP;
}
