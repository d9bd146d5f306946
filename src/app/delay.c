/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay.c - read a delay exactly, without floating point. Called by the routes that take one.
 */
#include "app/delay.h"

#include <errno.h>

#include "base/time.h"
#include "ring/sys.h"

#define DELAY_MAX_NS (24 * 3600 * NS_PER_S)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* unit_ns - the unit that the rest of the text names, 0 when it names none. */
static uint64_t unit_ns(struct slice unit)
{
    static const struct {
        struct slice name;
        uint64_t ns;
    } units[] = {
        {SLICE(""), NS_PER_S},       {SLICE("s"), NS_PER_S},        {SLICE("ms"), NS_PER_MS},
        {SLICE("m"), 60 * NS_PER_S}, {SLICE("h"), 3600 * NS_PER_S},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equal(unit, units[i].name)) {
            return units[i].ns;
        }
    }
    return 0;
}

int delay_parse(struct slice text, uint64_t *ns)
{
    size_t at = 0, whole_end, fraction_at, fraction_end;

    if (text.length > DELAY_TEXT_MAX) {
        return -EINVAL;
    }
    while (at < text.length && is_digit(text.at[at])) {
        at++;
    }
    whole_end = fraction_at = fraction_end = at;
    if (at < text.length && text.at[at] == '.') {
        fraction_at = ++at;
        while (at < text.length && is_digit(text.at[at])) {
            at++;
        }
        fraction_end = at;
        if (fraction_at == fraction_end) {
            return -EINVAL;
        }
    }
    uint64_t unit = unit_ns((struct slice){.at = text.at + at, .length = text.length - at});
    if (whole_end == 0 || unit == 0) {
        return -EINVAL;
    }
    uint64_t whole = 0;
    for (size_t i = 0; i < whole_end; i++) {
        whole = whole * 10 + (uint64_t)(text.at[i] - '0');
        if (whole > DELAY_MAX_NS / unit) {
            return -ERANGE;
        }
    }
    /* From the last digit on, so that what does not divide is only ever less than one nanosecond. */
    uint64_t fraction = 0;
    bool rest = false;
    for (size_t i = fraction_end; i > fraction_at; i--) {
        fraction += (uint64_t)(text.at[i - 1] - '0') * unit;
        rest = rest || fraction % 10 != 0;
        fraction /= 10;
    }
    uint64_t total = whole * unit + fraction + rest;
    if (total > DELAY_MAX_NS) {
        return -ERANGE;
    }
    *ns = total;
    return 0;
}

bool delay_check_text(struct http_exchange *exchange, struct slice text)
{
    uint64_t ignored;
    switch (delay_parse(text, &ignored)) {
    case 0:
        return true;
    case -ERANGE:
        http_respond_error(exchange, 400, SLICE("a delay is at most 24 h"), sys_wall_ns());
        return false;
    default:
        http_respond_error(exchange, 400,
                           SLICE("a delay is digits with an optional fraction and an optional "
                                 "unit ms, s, m or h"),
                           sys_wall_ns());
        return false;
    }
}

bool delay_check(struct http_exchange *exchange)
{
    return delay_check_text(exchange, exchange->params[0]);
}
