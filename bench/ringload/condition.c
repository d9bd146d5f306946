/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.c - see condition.h. Parsed by options.c, asked by main.c at the end.
 */
#include "ringload/condition.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "ringload/load.h"
#include "ringload/quantity.h"

/* parse_metric - the name before the operator, of so many characters. */
static int parse_metric(struct condition *condition, const char *text, size_t length)
{
    static const struct {
        const char *name;
        enum condition_metric metric;
    } names[] = {{"avg", CONDITION_AVERAGE},
                 {"max", CONDITION_MAX},
                 {"min", CONDITION_MIN},
                 {"rps", CONDITION_RATE},
                 {"errors", CONDITION_ERRORS}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i].name) == length && strncmp(text, names[i].name, length) == 0) {
            condition->metric = names[i].metric;
            return 0;
        }
    }
    double percent;
    const char *rest;
    if (text[0] != 'p' || quantity_decimal(text + 1, &percent, &rest) != 0 ||
        rest != text + length || percent > 100 ||
        fabs(percent * 1000 - nearbyint(percent * 1000)) > 1e-6) {
        return -EINVAL;
    }
    condition->metric = CONDITION_PERCENTILE;
    condition->percentile = (uint32_t)nearbyint(percent * 1000);
    return 0;
}

static int parse_value(struct condition *condition, const char *text)
{
    uint64_t ns;
    const char *rest;
    switch (condition->metric) {
    case CONDITION_RATE:
        if (quantity_count(text, &ns) == 0) { /* 10k */
            condition->value = (double)ns;
            return 0;
        }
        return quantity_decimal(text, &condition->value, &rest) != 0 || *rest != '\0' ? -EINVAL : 0;
    case CONDITION_ERRORS:
        if (quantity_decimal(text, &condition->value, &rest) != 0) {
            return -EINVAL;
        }
        condition->relative = strcmp(rest, "%") == 0;
        return *rest == '\0' || condition->relative ? 0 : -EINVAL;
    case CONDITION_PERCENTILE:
    case CONDITION_AVERAGE:
    case CONDITION_MAX:
    case CONDITION_MIN:
        break;
    }
    if (quantity_duration(text, &ns) != 0) {
        return -EINVAL;
    }
    condition->value = (double)ns;
    return 0;
}

int condition_parse(struct condition *condition, const char *text)
{
    *condition = (struct condition){.text = text};
    size_t length = strcspn(text, "<>");
    const char *at = text + length;
    if (*at == '\0' || parse_metric(condition, text, length) != 0) {
        return -EINVAL;
    }
    condition->below = *at++ == '<';
    if (*at == '=') {
        condition->or_equal = true;
        at++;
    }
    return parse_value(condition, at);
}

static double measure(const struct condition *condition, const struct outcome *outcome)
{
    const struct histogram *latency = &outcome->tally.latency;
    switch (condition->metric) {
    case CONDITION_PERCENTILE:
        return (double)histogram_percentile(latency, condition->percentile);
    case CONDITION_AVERAGE:
        return histogram_mean(latency);
    case CONDITION_MAX:
        return (double)latency->max;
    case CONDITION_MIN:
        return (double)latency->min;
    case CONDITION_RATE:
        return outcome_rate(outcome);
    case CONDITION_ERRORS:
        break;
    }
    double errors = (double)tally_failed(&outcome->tally);
    if (!condition->relative) {
        return errors;
    }
    return outcome->tally.started > 0 ? 100 * errors / (double)outcome->tally.started : 0;
}

bool condition_holds(const struct condition *condition, const struct outcome *outcome,
                     double *measured)
{
    *measured = measure(condition, outcome);
    if (condition->or_equal && *measured == condition->value) {
        return true;
    }
    return condition->below ? *measured < condition->value : *measured > condition->value;
}
