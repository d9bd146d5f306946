#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# replay.sh SIM SEEDS - a seed is the same run, event by event, whichever process runs it, and beside whatever else.
sim=$1 seeds=$2
"$sim" --hashes --seeds="$seeds" --jobs=3 >"$sim.first" && "$sim" --hashes --seeds="$seeds" --jobs=1 >"$sim.again" || exit 1
sort -n "$sim.first" >"$sim.first.sorted"
sort -n "$sim.again" | cmp "$sim.first.sorted" - || exit 1
[ "$(cut -d' ' -f2 "$sim.first" | sort -u | wc -l)" = "$seeds" ] || { echo "sim-replay: two seeds are one run" >&2; exit 1; }
for seed in 1 2 3; do # alone, as a failure is looked at; what SIM_TRACE prints changes nothing
	SIM_TRACE=1 "$sim" --seed=$seed | tail -n1 | grep -q "hash $(sed -n "s/^$seed //p" "$sim.first.sorted")" ||
		{ echo "sim-replay: seed $seed alone is another run" >&2; exit 1; }
done
echo "sim-replay: $seeds seeds ran twice, each the same to the last event"
