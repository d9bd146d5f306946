# SPDX-License-Identifier: Apache-2.0
#
# ringspun: `make run` and `make test` need git, make, a C compiler and the distribution's package manager; the
# rest is set up by src/dependencies.sh before anything is compiled. `make help` lists the targets.
#
# CC, CFLAGS, CPPFLAGS, LDFLAGS are the user's, and ours are appended. V=1 shows the commands, WERROR=1 (or CI=true)
# makes warnings errors. SANITIZE=address|undefined|thread|address,undefined and SWITCH=ucontext build into a directory of their own,
# build/asan for example, so that one kind of build does not undo another.

VERSION := 0.1.0

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

ifeq ($(origin CC),default)
CC := cc
endif
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
PYTHON ?= $(shell for p in /usr/bin/python3 python3; do $$p -c 'import pytest' 2>/dev/null && { echo $$p; break; }; done)
ARGS ?=
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-7s %s\n' $(1) $(2))

# ---------------------------------------------------------------- which build

empty :=
comma := ,
sanitizer_name := $(subst address,asan,$(subst undefined,ubsan,$(subst thread,tsan,$(subst $(comma),-,$(SANITIZE)))))
variant := $(subst $(empty) $(empty),-,$(strip $(sanitizer_name) $(filter ucontext,$(SWITCH)) $(FLAVOUR)))
B := build$(addprefix /,$(variant))
O := $(B)/obj

# FLAVOUR names a directory of its own for any other flags; LAYERS='base fiber' makes the library of those alone
# (tests/switch_matrix.sh wants both).
FLAVOUR ?=
LAYERS ?= base fiber ring io http app

# The context switch: assembly where we have it for the compiler's target, swapcontext elsewhere and on request.
processor := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
switch_source := $(if $(filter ucontext,$(SWITCH)),,$(wildcard src/fiber/switch_$(processor).S))
ifeq ($(switch_source),)
switch_source := src/fiber/switch_ucontext.c
switch_define := -DSWITCH_UCONTEXT
endif

sources := $(filter-out src/fiber/switch_%,$(wildcard $(addprefix src/,$(addsuffix /*.c,$(LAYERS))))) \
	$(wildcard $(switch_source))
objects := $(patsubst src/%,$(O)/%.o,$(basename $(sources)))
library := $(O)/libringspun.a

# ---------------------------------------------------------------- flags

warnings := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
hardening := -fPIE -fstack-protector-strong -fstack-clash-protection
ifeq ($(SANITIZE),)
warnings += -Wframe-larger-than=4096
# glibc's checks need an optimising build, and a distribution's flags may ask for a higher level already.
ifeq ($(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),)
hardening += $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
else
hardening += -U_FORTIFY_SOURCE
sanitize_flags := -fsanitize=$(SANITIZE) $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize-recover=all)
ifeq ($(SANITIZE),fuzz)
sanitize_flags := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
endif
endif
ifneq ($(filter true 1,$(CI) $(WERROR)),)
warnings += -Werror
endif

# Asked when a recipe first needs it, and only then: dependencies.sh may just have brought it.
from_shell = $(eval $(1) := $$(shell $(2)))$($(1))
pkg_config := PKG_CONFIG_PATH=build/deps/pkgconfig:$$$$PKG_CONFIG_PATH $(PKG_CONFIG)
deps_cflags = $(call from_shell,deps_cflags,$(pkg_config) --cflags liburing libllhttp libcjson)
deps_libs = $(call from_shell,deps_libs,$(pkg_config) --libs liburing libllhttp libcjson)
cmocka_cflags = $(call from_shell,cmocka_cflags,$(pkg_config) --cflags cmocka)
cmocka_libs = $(call from_shell,cmocka_libs,$(pkg_config) --libs cmocka)

cppflags = -Isrc -D_GNU_SOURCE -DRINGSPUN_VERSION='"$(VERSION)"' $(switch_define) $(deps_cflags) $(CPPFLAGS)
cflags = $(CFLAGS) -std=gnu11 $(warnings) -fno-omit-frame-pointer -pthread $(hardening) $(sanitize_flags)
ldflags = -pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed $(sanitize_flags) $(LDFLAGS)
compile = $(CC) $(cppflags) $(cflags) -MMD -MP
link = $(CC) $(cflags) $(ldflags)

# ---------------------------------------------------------------- the program

.PHONY: all run help
all: $(B)/ringspun $(B)/ringload ## build build/ringspun and build/ringload (with SANITIZE= or SWITCH=, in a directory of its own)

run: all ## build, and run the server: make run ARGS='--server.port=8081'
	$(Q)exec $(B)/ringspun $(ARGS)

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

$(B)/ringspun: $(O)/main.o $(library)
	$(call say,LINK,$@)
	$(Q)$(link) $(O)/main.o $(library) $(deps_libs) $(LDLIBS) -o $@

# The load generator: bench/ringload, on the same library.
load_sources := $(wildcard bench/ringload/*.c)
load_objects := $(load_sources:%.c=$(O)/%.o)

$(B)/ringload: $(load_objects) $(library)
	$(call say,LINK,$@)
	$(Q)$(link) $(load_objects) $(library) $(deps_libs) -lm $(LDLIBS) -o $@

$(O)/bench/ringload/%.o: bench/ringload/%.c $(O)/flags | dependencies
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(compile) -Ibench -c $< -o $@

$(library): $(objects)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(objects)

$(O)/%.o: src/%.c $(O)/flags | dependencies
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(compile) -c $< -o $@

$(O)/%.o: src/%.S $(O)/flags | dependencies
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D) && $(compile) -c $< -o $@

# Other flags or another compiler, and all is compiled anew.
$(O)/flags: always | dependencies
	$(Q)mkdir -p $(@D) && printf '%s\n' "$$($(CC) --version | head -n1)" '$(subst ','\'',$(compile) $(ldflags))' >$@.new && \
		if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: always dependencies dependencies-test dependencies-check dependencies-bench
always:

dependencies:
	$(Q)src/dependencies.sh build

dependencies-test dependencies-check dependencies-bench: dependencies-%: | dependencies
	$(Q)src/dependencies.sh $*

# ---------------------------------------------------------------- unit tests

# tests/unit/test_X.c is one cmocka program. One that says `/* links: scripted kernel */` links kernel.c and kernel_*.c
# in front of the library, so that the archive's ring.o and sys.o are not drawn in; `/* links: bench/x/y */` links
# that object of bench/. Whatever else stands beside the tests is theirs to call; valgrind_ring.c says why --wrap.
unit_sources := $(wildcard tests/unit/test_*.c)
unit_scripted := $(if $(unit_sources),$(shell grep -l -F '/* links: scripted kernel */' $(unit_sources)))
unit_kernel := $(wildcard tests/unit/kernel.c tests/unit/kernel_*.c)
unit_support := $(if $(filter http,$(LAYERS)),$(filter-out $(unit_sources) $(unit_kernel),$(wildcard tests/unit/*.c)), \
	tests/unit/fiber_kit.c) $(wildcard tests/unit/*.S)
unit_object = $(patsubst tests/%,$(O)/tests/%.o,$(basename $(1)))
unit_programs := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(unit_sources))
TESTS ?= $(patsubst tests/unit/test_%.c,%,$(unit_sources))
TEST_TIMEOUT ?= 120
unit_wrap := -Wl,--wrap=io_uring_submit_and_wait,--wrap=io_uring_submit_and_wait_timeout

$(O)/tests/%.o: tests/%.c $(O)/flags | dependencies-test
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(compile) -Wno-frame-larger-than -Itests/unit -Ibench $(cmocka_cflags) -c $< -o $@

$(O)/tests/%.o: tests/%.S $(O)/flags | dependencies-test
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D) && $(compile) -c $< -o $@

$(B)/tests/unit/%: $(O)/tests/unit/%.o $(call unit_object,$(unit_support)) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(link) $(unit_wrap) $(filter %.o,$^) $(library) $(cmocka_libs) $(deps_libs) -lm $(LDLIBS) -o $@

# "tests/unit/test_X.c:/* links: bench/x/y */" becomes a line "build/tests/unit/test_X: build/obj/bench/x/y.o"
$(foreach l,$(shell grep -o -H '/[*] links: bench/[a-z_/]*' $(unit_sources) /dev/null | sed 's,:.*: ,:,'),\
	$(eval $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(firstword $(subst :, ,$l))): $(O)/$(lastword $(subst :, ,$l)).o))

$(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(unit_scripted)): $(call unit_object,$(unit_kernel))

.SECONDARY: $(call unit_object,$(unit_sources) $(unit_kernel) $(unit_support))

# The whole list runs, one after the other, up to the first that fails. TESTS='parser timer' runs only those.
.PHONY: test-unit test-e2e test
test-unit: $(TESTS:%=$(B)/tests/unit/test_%) ## the unit tests alone (TESTS='parser timer' for some)
	$(Q)for t in $(TESTS); do \
		echo "== $(B)/tests/unit/test_$$t"; \
		timeout $(TEST_TIMEOUT) $(test_wrapper) $(B)/tests/unit/test_$$t || \
			{ echo "unit tests ($(B)): test_$$t failed with status $$?" >&2; exit 1; }; \
	done; echo "unit tests ($(B)): $(words $(TESTS)) programs passed"

-include $(patsubst %.o,%.d,$(call unit_object,$(unit_sources) $(unit_kernel) $(unit_support)))
-include $(objects:.o=.d) $(O)/main.d $(load_objects:.o=.d)

# ---------------------------------------------------------------- all the tests

# The tests against the real binary and real clients, and the tables of RFC 9110 and 9112. What they leave out (a client
# that the distribution does not have) pytest says. E2E_ARGS='-k drain -x' is handed to pytest. Each server runs under
# docker/seccomp.json, where a call that it does not allow ends the server; SECCOMP= goes without.
test-e2e: $(B)/ringspun $(B)/ringload | dependencies-test ## the end-to-end tests alone (E2E_ARGS='-k drain' for some)
	$(Q)RINGSPUN_BINARY=$(abspath $(B)/ringspun) RINGLOAD_BINARY=$(abspath $(B)/ringload) \
		RINGSPUN_SANITIZED=$(SANITIZE) RINGSPUN_SECCOMP=$(SECCOMP) PYTHONDONTWRITEBYTECODE=1 \
		timeout -k 10 $(E2E_TIMEOUT) $(PYTHON) -m pytest -p no:cacheprovider -q $(E2E_TESTS) $(E2E_ARGS)

E2E_TESTS ?= tests/e2e tests/conformance
E2E_ARGS ?=
SECCOMP ?= 1
E2E_TIMEOUT ?= 1200

test: ## unit and end-to-end tests, in about twelve minutes
	$(Q)$(MAKE) all test-unit
	$(Q)$(MAKE) test-e2e

# In containers and under systemd, for real; what has no engine here is skipped with the reason. DEPLOY_ARGS as E2E_ARGS.
.PHONY: test-deploy
test-deploy: $(B)/ringspun $(B)/ringload | dependencies-test ## docker compose up and systemctl start, where there are engines for them
	$(Q)RINGSPUN_BINARY=$(abspath $(B)/ringspun) PYTHONDONTWRITEBYTECODE=1 \
		timeout -k 10 $(DEPLOY_TIMEOUT) $(PYTHON) -m pytest -p no:cacheprovider -q -rs tests/deploy $(DEPLOY_ARGS)

DEPLOY_ARGS ?=
DEPLOY_TIMEOUT ?= 1200

.PHONY: check sanitized asan ubsan tsan tsan-threads valgrind valgrind-part switch-matrix fuzz
check: ## what test leaves out: layers, tidy, sanitizers, the unit tests on swapcontext, simulation, some fuzzing
	$(Q)$(MAKE) layers
	$(Q)$(MAKE) tidy
	$(Q)$(MAKE) sanitized E2E_TESTS='$(CHECK_SANITIZED_E2E)'
	$(Q)$(MAKE) tsan-threads
	$(Q)$(MAKE) valgrind-part
	$(Q)$(MAKE) SWITCH=ucontext all test-unit
	$(Q)$(MAKE) switch-matrix SWITCHES=assembly
	$(Q)$(MAKE) sim sim-replay sim-mutants
	$(Q)$(MAKE) fuzz SECONDS=$(CHECK_FUZZ_SECONDS) FUZZ_ARGS=-seed=1
	@echo "check: layers, tidy, sanitizers, swapcontext, simulation and fuzz are in order"

# The end-to-end tests that meet most of the code in least time; 'make sanitized' alone runs all, in about ten minutes.
CHECK_SANITIZED_E2E ?= $(patsubst %,tests/e2e/test_%.py,storm upstream product)
CHECK_FUZZ_SECONDS ?= 60

# The stack of a function that has returned is watched too, on each fiber's own stack.
sanitized: ## unit and end-to-end tests with AddressSanitizer and UndefinedBehaviorSanitizer together
	$(Q)ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(MAKE) SANITIZE=address,undefined TEST_TIMEOUT=300 all test-unit
	$(Q)ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(MAKE) SANITIZE=address,undefined test-e2e

asan: ## the unit tests with AddressSanitizer (and the server: build/asan/ringspun)
	$(Q)$(MAKE) SANITIZE=address TEST_TIMEOUT=300 all test-unit

ubsan: ## the unit tests with UndefinedBehaviorSanitizer
	$(Q)UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) SANITIZE=undefined TEST_TIMEOUT=300 all test-unit

# Without address randomisation: older ThreadSanitizers do not know the layouts that newer kernels choose. All the unit
# tests, and what of the end-to-end tests brings carriers, pools and hand-overs together; check leaves out the unit
# tests that have one thread. A report ends a program with a status that fails its test.
tsan_e2e := sigterm_with_requests_on_either or under_load_truncates or dumps_all_fibers or spread_over_the_carriers or \
	products_of_both or siblings_of_a_failed or resets_ends_all_calls or every_app_port or finishes_the_waits or \
	shared_by_carriers or first_come or a_thread_of_its_own or resets_do_not or reset_do_not
tsan_wrapper := TSAN_OPTIONS=atexit_sleep_ms=0 setarch -R
threads_tests := carrier_threads client_pool conn_thread echo_wait pool resolve scope sleep stuck switch_values sync_threads

tsan: ## the unit tests with ThreadSanitizer, and end-to-end tests of pools, hand-overs and drains
	$(Q)$(MAKE) SANITIZE=thread TEST_TIMEOUT=600 test_wrapper='env $(tsan_wrapper)' all test-unit
	$(Q)$(tsan_wrapper) $(MAKE) SANITIZE=thread SECCOMP= E2E_ARGS='-k "$(tsan_e2e)"' test-e2e

tsan-threads:
	$(Q)$(MAKE) SANITIZE=thread TEST_TIMEOUT=600 TESTS='$(threads_tests)' test_wrapper='env $(tsan_wrapper)' test-unit

# --fair-sched: threads that spin would keep valgrind's one lock. What check runs are the parts that deal with bytes
# from outside, with memory that the kernel fills, or with stacks.
valgrind_tests := app_json arena carrier_threads client config conn fiber message op overflow parser_reply scope session \
	slab switch switch_values sync sync_threads writer

valgrind: | dependencies-check ## the unit tests under valgrind's memcheck
	$(Q)$(MAKE) TEST_TIMEOUT=900 test-unit \
		test_wrapper='valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full'

valgrind-part:
	$(Q)$(MAKE) valgrind TESTS='$(valgrind_tests)'

switch-matrix: | dependencies-test dependencies-check ## the fiber layer by gcc and clang at -O0, -O2 and -O3 -flto (SWITCHES='swapcontext' for one kind)
	$(Q)MAKE='$(MAKE)' tests/switch_matrix.sh $(SWITCHES)

SWITCHES ?= assembly swapcontext aarch64

# tests/fuzz/fuzz_X.c is one libFuzzer program. What it learns stays in build/fuzz/corpus; the seeds are committed, and
# tests/fuzz/seeds.py writes them. An input that breaks a property is left in build/fuzz, and named.
fuzz_targets := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_support := $(call unit_object,tests/fuzz/differ.c tests/unit/parse_trace.c)
FUZZ ?= $(fuzz_targets)
SECONDS ?= 60
FUZZ_ARGS ?=

fuzz: ## libFuzzer on what reads foreign bytes: make fuzz SECONDS=600 (FUZZ='request reply' for some)
	$(Q)$(MAKE) SANITIZE=fuzz CC=clang $(FUZZ:%=fuzz/%)

$(B)/fuzz/%: $(O)/tests/fuzz/fuzz_%.o $(fuzz_support) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(link) -fsanitize=fuzzer $(filter %.o,$^) $(library) $(cmocka_libs) $(deps_libs) $(LDLIBS) -o $@

.SECONDARY: $(fuzz_targets:%=$(O)/tests/fuzz/fuzz_%.o) $(fuzz_support)
.PHONY: $(fuzz_targets:%=fuzz/%)
$(fuzz_targets:%=fuzz/%): fuzz/%: $(B)/fuzz/% | dependencies-check
	$(Q)mkdir -p $(B)/corpus/$* && UBSAN_OPTIONS=print_stacktrace=1 $< -max_total_time=$(SECONDS) $(FUZZ_ARGS) -max_len=4096 \
		-timeout=10 -dict=tests/fuzz/http.dict -artifact_prefix=$(B)/$*- -print_final_stats=1 \
		$(B)/corpus/$* tests/fuzz/corpus/$* >$(B)/$*.log 2>&1 || { tail -n40 $(B)/$*.log; exit 1; }; \
		echo "fuzz $*: $$(awk '/number_of_executed_units/ { print $$2 }' $(B)/$*.log) inputs, none breaks a property"

-include $(patsubst %.o,%.d,$(fuzz_targets:%=$(O)/tests/fuzz/fuzz_%.o) $(fuzz_support))

# The simulation: tests/sim on the scripted kernel, and a copy of the library whose allocations are the simulation's.
sim_objects := $(patsubst %.c,$(O)/%.o,$(wildcard tests/sim/*.c)) \
	$(call unit_object,$(filter-out tests/unit/kernel_app.c tests/unit/kernel_server.c,$(unit_kernel)) tests/unit/fiber_kit.c)
SIM_SEEDS ?= 1000
SEEDS ?= $(SIM_SEEDS)
SIM_ARGS ?=

.PHONY: sim sim-replay
sim: $(B)/sim ## whole lives of the server on a simulated kernel: make sim SEEDS=5000, SEED=42 for one (PROFILE=storm)
	$(Q)$(B)/sim $(if $(SEED),--seed=$(SEED),--seeds=$(SEEDS)) $(if $(PROFILE),--profile=$(PROFILE)) $(SIM_ARGS)

sim-replay: $(B)/sim ## a seed is the same run each time
	$(Q)tests/sim/replay.sh $< 100

$(B)/sim: $(sim_objects) $(O)/sim/libringspun.a
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(deps_libs) $(LDLIBS) -o $@

$(O)/sim/libringspun.a: $(library) tests/sim/redefine.syms
	$(Q)mkdir -p $(@D) && objcopy --redefine-syms=tests/sim/redefine.syms $< $@

# tests/sim/mutants/X.patch is a bug on purpose: that file of src is compiled with it, and linked in front of the library.
sim_mutants := $(patsubst tests/sim/mutants/%.patch,$(B)/mutants/%,$(wildcard tests/sim/mutants/*.patch))
SIM_MUTANT_SEEDS ?= 300

.PHONY: sim-mutants
sim-mutants: $(B)/sim $(sim_mutants) ## bugs made on purpose, each of which the simulation catches
	$(Q)tests/sim/mutants.sh $(SIM_MUTANT_SEEDS) $^

$(B)/mutants/%: tests/sim/mutants/%.patch $(sim_objects) $(O)/sim/libringspun.a | dependencies-check
	$(call say,MUTANT,$*)
	$(Q)rm -rf $(O)/mutants/$* && mkdir -p $(@D) $(O)/mutants/$* && \
		file=$$(sed -n 's,^+++ b/,,p' $<) && mkdir -p $(O)/mutants/$*/$${file%/*} && cp $$file $(O)/mutants/$*/$$file && \
		patch -s -F0 -p1 -d $(O)/mutants/$* <$< && $(compile) -c $(O)/mutants/$*/$$file -o $@.o && \
		objcopy --redefine-syms=tests/sim/redefine.syms $@.o && \
		$(link) $(sim_objects) $@.o $(O)/sim/libringspun.a $(deps_libs) $(LDLIBS) -o $@

-include $(sim_objects:.o=.d)

# ---------------------------------------------------------------- the code's form

c_files := $(sort $(wildcard src/*.[ch] src/*/*.[ch] tests/unit/*.[ch] tests/sim/*.[ch] tests/fuzz/*.[ch] bench/*.[ch] bench/*/*.[ch]))
tidy_files := $(sort $(filter %.c,$(sources)) $(wildcard src/main.c src/fiber/switch_ucontext.c bench/*.c bench/micro/*.c) $(load_sources))

.PHONY: layers tidy format
layers: $(O)/main.o $(library) ## check who includes whom, and that only ring/ calls the kernel
	$(Q)CC='$(CC)' tests/layers_test.sh
	$(Q)tests/layers.sh src $(O) bench

tidy: $(tidy_files:%=tidy/%) ## clang-tidy, with clang's own warnings

.PHONY: $(tidy_files:%=tidy/%)
$(tidy_files:%=tidy/%): tidy/%: | dependencies-check
	$(call say,TIDY,$*)
	$(Q)mkdir -p $(O)/tidy && clang-tidy --quiet $* -- $(cppflags) -Ibench -std=gnu11 $(warnings) -pthread \
		2>$(O)/tidy/$(subst /,-,$*) || { cat $(O)/tidy/$(subst /,-,$*) >&2; exit 1; }

format: | dependencies-check ## lay all C files out with clang-format
	$(Q)clang-format -i $(c_files)

# ---------------------------------------------------------------- benchmarks

# bench/micro/X.c is one program, build/bench/X. bare_loop, bare_pair and bare_sleeper are what others are measured against; million
# takes 4 GiB of memory, and runs when it is asked for.
bench_sources := $(wildcard bench/micro/*.c)
bench_programs := $(patsubst bench/micro/%.c,$(B)/bench/%,$(bench_sources))
BENCHES ?= $(filter-out bare_loop bare_pair bare_sleeper million,$(patsubst bench/micro/%.c,%,$(bench_sources)))

# boost.context, where it is installed, for the context switch to be compared with.
boost_libs = $(call from_shell,boost_libs,echo 'int main(void) { return 0; }' | \
	$(CC) -x c - -lboost_context -o /dev/null 2>/dev/null && echo -lboost_context)
$(O)/bench/micro/switch.o: private cppflags += $(if $(boost_libs),-DHAVE_BOOST_CONTEXT)
$(B)/bench/switch: private LDLIBS += $(boost_libs)

$(O)/bench/%.o: bench/%.c $(O)/flags | dependencies-bench
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(compile) -Ibench -c $< -o $@

$(B)/bench/%: $(O)/bench/micro/%.o $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(library) $(deps_libs) $(LDLIBS) -o $@

$(B)/bench/million: $(O)/bench/ringload/sleepers.o

.SECONDARY: $(bench_sources:%.c=$(O)/%.o)
.PHONY: bench stress bench-peers bench-micro bench-compare
bench: $(B)/ringspun $(B)/ringload $(B)/bench/bare_pair $(B)/bench/bare_sleeper ## the published experiments side by side, into bench/results (BENCH_ARGS=--quick)
	$(Q)bench/run $(BENCH_ARGS)

stress: $(B)/ringspun $(B)/ringload ## locks and tails, fibers beside platform threads, into bench/results (STRESS_ARGS=--quick)
	$(Q)bench/stress $(STRESS_ARGS)

STRESS_ARGS ?=

bench-peers: $(B)/ringspun $(B)/ringload $(B)/bench/bare_loop $(B)/bench/switch $(B)/bench/spawn ## beside nginx, Go, Tomcat, threads, in containers (BENCH_ARGS=--quick)
	$(Q)bench/peers/run.py $(BENCH_ARGS)

BENCH_ARGS ?=

bench-micro: $(bench_programs) ## one primitive each: what a switch, a spawn, a park costs (BENCHES='switch' for some)
	$(Q)for b in $(BENCHES); do echo "== $(B)/bench/$$b"; $(B)/bench/$$b || exit; done

bench-compare: $(B)/ringspun $(B)/bench/bare_loop ## what a request costs, beside a bare io_uring loop in the same run
	$(Q)python3 bench/micro/compare.py $(abspath $(B)/ringspun $(B)/bench/bare_loop)

-include $(bench_sources:%.c=$(O)/%.d)

# ---------------------------------------------------------------- install

# Unstripped: a fiber that holds its carrier is logged with its C stack, and a core of the watchdog's should be
# readable. systemd and sysctl look below /usr/local/lib and /usr/lib; for any other PREFIX the files go to /etc.
PREFIX ?= /usr/local
DESTDIR ?=
bindir := $(PREFIX)/bin
conf_root := $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib,/etc)
unit_dir := $(conf_root)/systemd/system
sysctl_dir := $(conf_root)/sysctl.d
man_dir := $(PREFIX)/share/man
completion_dir := $(PREFIX)/share/bash-completion/completions
install_dirs := $(bindir) $(unit_dir) $(sysctl_dir) $(man_dir)/man1 $(man_dir)/man8 $(completion_dir)
units := ringspun.service ringspun@.service ringspun.socket
# After a change on the running system, not in a package's tree; where systemd runs at all.
reload_systemd := [ -n "$(DESTDIR)" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload

.PHONY: install uninstall
install: all ## copy what was built to PREFIX (/usr/local) below DESTDIR, with units, sysctl, manual, completion
	$(Q)install -d $(addprefix $(DESTDIR),$(install_dirs))
	$(Q)install -m 755 $(B)/ringspun $(B)/ringload $(DESTDIR)$(bindir)
	$(Q)for unit in $(units); do \
		sed 's|@bindir@|$(bindir)|' systemd/$$unit >$(DESTDIR)$(unit_dir)/$$unit && \
		chmod 644 $(DESTDIR)$(unit_dir)/$$unit || exit; done
	$(Q)install -m 644 systemd/90-ringspun.conf $(DESTDIR)$(sysctl_dir)/90-ringspun.conf
	$(Q)install -m 644 docs/ringspun.8 $(DESTDIR)$(man_dir)/man8/ringspun.8
	$(Q)install -m 644 docs/ringload.1 $(DESTDIR)$(man_dir)/man1/ringload.1
	$(Q)install -m 644 docs/ringspun.bash-completion $(DESTDIR)$(completion_dir)/ringspun
	$(Q)$(reload_systemd)

# Below DESTDIR the directories too, as far as they are empty then.
uninstall: ## remove what install copied, with the same PREFIX and DESTDIR
	$(Q)rm -f $(addprefix $(DESTDIR),$(bindir)/ringspun $(bindir)/ringload $(units:%=$(unit_dir)/%) \
		$(sysctl_dir)/90-ringspun.conf $(man_dir)/man8/ringspun.8 $(man_dir)/man1/ringload.1 $(completion_dir)/ringspun)
	$(Q)[ -z "$(DESTDIR)" ] || [ ! -d "$(DESTDIR)" ] || { cd $(DESTDIR) && \
		rmdir -p --ignore-fail-on-non-empty $(install_dirs:/%=%) 2>/dev/null; true; }
	$(Q)$(reload_systemd)

# ---------------------------------------------------------------- clean

.PHONY: clean
clean: ## remove what was built, but for build/deps, the libraries that were fetched
	$(Q)[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +
