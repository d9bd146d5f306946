/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity.c - see quantity.h. Called by options.c, expect.c and condition.c.
 */
#include "ringload/quantity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"

#define WEEK_S 604800.0
#define COUNT_MAX 1e12

int quantity_decimal(const char *text, double *value, const char **rest)
{
    double number = 0, scale = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
    }
    if (at == text) {
        return -EINVAL;
    }
    if (*at == '.') {
        const char *fraction = ++at;
        for (; *at >= '0' && *at <= '9'; at++) {
            scale /= 10;
            number += scale * (*at - '0');
        }
        if (at == fraction) {
            return -EINVAL;
        }
    }
    *value = number;
    *rest = at;
    return 0;
}

int quantity_count(const char *text, uint64_t *value)
{
    double number;
    const char *unit;
    if (quantity_decimal(text, &number, &unit) != 0) {
        return -EINVAL;
    }
    if (strcmp(unit, "k") == 0 || strcmp(unit, "K") == 0) {
        number *= 1e3;
    } else if (strcmp(unit, "m") == 0 || strcmp(unit, "M") == 0) {
        number *= 1e6;
    } else if (*unit != '\0') {
        return -EINVAL;
    }
    if (number > COUNT_MAX) {
        return -ERANGE;
    }
    if (fabs(number - nearbyint(number)) > 1e-6) {
        return -EINVAL;
    }
    *value = (uint64_t)nearbyint(number);
    return 0;
}

int quantity_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}};
    double number;
    const char *unit;
    if (quantity_decimal(text, &number, &unit) != 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            if (number * units[i].seconds > WEEK_S) {
                return -ERANGE;
            }
            *ns = (uint64_t)nearbyint(number * units[i].seconds * (double)NS_PER_S);
            return 0;
        }
    }
    return -EINVAL;
}

const char *quantity_format_duration(char dst[QUANTITY_TEXT_SIZE], double ns)
{
    if (ns >= (double)NS_PER_S) {
        snprintf(dst, QUANTITY_TEXT_SIZE, "%.3f s", ns / (double)NS_PER_S);
    } else if (ns >= (double)NS_PER_MS) {
        snprintf(dst, QUANTITY_TEXT_SIZE, "%.3f ms", ns / (double)NS_PER_MS);
    } else {
        snprintf(dst, QUANTITY_TEXT_SIZE, "%.1f us", ns / (double)NS_PER_US);
    }
    return dst;
}
