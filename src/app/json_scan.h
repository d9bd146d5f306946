/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h - tokens of a JSON text, for app/json only: what must be checked
 * before cJSON may see the text, and where each leaf stands, which cJSON forgets.
 * Knows nothing of grammar; that a comma is missing is for cJSON to find.
 */
#ifndef APP_JSON_SCAN_H
#define APP_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "app/json.h"
#include "base/slice.h"

/* json_scan_check - may cJSON parse this? NULL, or what is wrong, with the place in *offset. */
const char *json_scan_check(struct slice text, size_t *offset);

/*
 * json_scan_leaf - the next leaf of a text that cJSON accepted.
 *
 * @offset  where to go on; moved behind the leaf
 * @leaf    its text: a string with its quotes, {} and [] from bracket to bracket
 *
 * Returns  false when there is none left
 */
bool json_scan_leaf(struct slice text, size_t *offset, struct slice *leaf);

/* json_scan_position - line and column of a byte of the text. */
struct json_position json_scan_position(struct slice text, size_t offset);

#endif
