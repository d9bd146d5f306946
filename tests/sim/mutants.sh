#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# mutants.sh SEEDS SIM MUTANT... - the program as it is passes all seeds; each mutant fails one of them.
seeds=$1 sim=$2
shift 2
if ! "$sim" --seeds="$seeds" >"$sim.log" 2>&1; then
	tail -n5 "$sim.log" >&2
	exit 1
fi
for mutant in "$@"; do
	if "$mutant" --first --seeds="$seeds" >"$mutant.log" 2>&1; then
		echo "sim-mutants: ${mutant##*/} passes $seeds seeds: the simulation does not see it" >&2
		exit 1
	fi
	seed=$(sed -n 's/^sim: seed \([0-9]*\) failed.*/\1/p' "$mutant.log" | head -n1)
	why=$(sed -n 's/^scripted kernel, SEED=[0-9]*: //p; s/^ringspun: \(must.*\)/\1/p' "$mutant.log" | head -n1 | cut -c1-70)
	# Any other end (a program that does not start) is none that the simulation has seen.
	[ -n "$seed" ] && [ -n "$why" ] || { tail -n5 "$mutant.log" >&2; exit 1; }
	printf '  %-24s seed %3s: %s\n' "${mutant##*/}" "$seed" "$why"
done
echo "sim-mutants: $# mutants caught within $seeds seeds, which the program itself passes"
