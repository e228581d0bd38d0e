# Shortcuts for common tasks. Everything else is plain cargo.

# The tag, branch or commit that `make semver` compares with. The default is the commit where this branch left
# main.
BASELINE ?= $(shell git merge-base HEAD main)
# The crates that are published: all except fairgate-fuzz and fairgate-evidence, which are only useful in this
# repository, and fairgate-python, which is published as a wheel.
PUBLISHED = --workspace --exclude fairgate-fuzz --exclude fairgate-evidence --exclude fairgate-python \
	--exclude own-discipline
# A target without a standard library: code that uses one does not compile.
BARE = x86_64-unknown-none
# Where everything is built, and the virtual environment of the Python tests.
TARGET = $${CARGO_TARGET_DIR:-$(CURDIR)/target}
ENVIRONMENT = $(TARGET)/python
RUST_VERSION = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help demo debug-build test own-discipline bench figures peers verdicts
.PHONY: lint rust-lint no-std package deny
.PHONY: advisories pin-instructions
.PHONY: semver msrv
.PHONY: packages try-packages static unit
.PHONY: verdicts-live tools install integrations header tc-testing miri
.PHONY: kernel kernel-check kernel-debug kernel-packages kernel-test
.PHONY: docs docs-environment
.PHONY: python python-build python-tests python-environment python-lint python-disciplines python-client
.PHONY: tutorials wheel test-build

help:
	@echo 'make demo            compare disciplines on a simulated link and on recorded traffic'
	@echo 'make test            all tests (as root also tests with live traffic, in network namespaces)'
	@echo 'make pin-instructions write the instructions of a packet anew, with which make test compares'
	@echo 'make own-discipline  tests of a discipline outside of this repository: builds everything once more'
	@echo 'make python          build the Python package in place, and run its tests; part of make test'
	@echo 'make python-lint     ruff and mypy over the Python package and scripts; part of make lint'
	@echo 'make python-client   write the client of the API again, from the routes of a run; needs root'
	@echo 'make tutorials       run the tutorials, write them as notebooks with outputs'
	@echo 'make wheel           the wheel of the Python package, in target/wheels'
	@echo 'make bench           all benchmarks; see docs/performance.md'
	@echo 'make figures         run all benchmarks of one build, write docs/performance.md; needs root'
	@echo 'make peers           the schedulers of dummynet, of a checkout DIR=, beside ours; writes there, too'
	@echo 'make verdicts        run all experiments, write their verdicts into docs/experiments/verdicts.csv'
	@echo 'make verdicts-live   the same with real traffic, as root: an hour, in which nothing else should run'
	@echo 'make install         the program, its manual pages, the C library; DESTDIR=, PREFIX=, LIBDIR='
	@echo 'make packages        a .deb and an .rpm, in target/packages'
	@echo 'make try-packages    the same of the debug build, installed, run, and as a service under systemd'
	@echo 'make static          the program as one file without libraries, below 15 MB; needs musl-tools'
	@echo 'make unit            check the unit of systemd and how much it leaves exposed; part of make lint'
	@echo 'make docs            the documentation site, in target/site; search works without a server'
	@echo 'make integrations    build and run Fairgate inside ns-3, DPDK and a UDP sender; 235 Debian packages'
	@echo 'make header          write the header of the C library anew from its source'
	@echo 'make tc-testing      the kernel'"'"'s test cases of tc, from the source tree KERNEL=DIR'
	@echo 'make kernel-test     boot kernels in QEMU with Fairgate as their qdisc, and test it'
	@echo 'make kernel-debug    kernel-test in a kernel with KASAN, lockdep and kmemleak, which it builds'
	@echo 'make kernel-check    the part of it that boots no kernel: the object, its gates, the same departures'
	@echo 'make kernel          the module for the kernel of the headers KERNEL=DIR, or of this machine'
	@echo 'make kernel-packages fairgate-dkms, the kernel module as .deb and .rpm, in target/packages'
	@echo 'make lint            formatting, line lengths, circles, clippy, documentation, and no-std'
	@echo 'make no-std          build the library for a machine without an operating system'
	@echo 'make package         pack every published crate and build it from its package'
	@echo 'make deny            check licences, bans and sources of all dependencies'
	@echo 'make advisories      check all dependencies for known bugs; fetches the database from GitHub'
	@echo 'make semver          changes of public interfaces since this branch left main, or since BASELINE='
	@echo 'make miri            tests of `unsafe` code under Miri; installs a nightly compiler'
	@echo 'make msrv            build everything with the oldest supported Rust'

tools:
	@scripts/install-tools

# What a comparison does not need is left out: the experiments, Parquet, and the allocator, which is in C.
demo: tools
	cargo build --release -p fairgate-cli --no-default-features
	$(TARGET)/release/fairgate compare
	$(TARGET)/release/fairgate compare --trace examples/recorded.pcap.gz --rate 15mbit --out fairgate-trace.html

test: tools
	scripts/test
	scripts/try-openwrt-init $(TARGET)/debug/fairgate

# Writes the counts anew with which `make test` compares. A change that makes one grow says what for.
pin-instructions: tools
	scripts/instructions pin

# The same selection as in `cargo test --workspace`, so that nothing is compiled twice: the dependencies of
# tests choose features too.
debug-build:
	cargo build --workspace --lib --bins --tests

# All that tests need. With --jobs=2 the environment of Python is installed meanwhile.
test-build: python-build python-environment
	cargo test --workspace --no-run

python-build: debug-build
	cp $(TARGET)/debug/lib_native.so python/fairgate/_native.abi3.so

python-environment:
	@scripts/python-environment $(ENVIRONMENT)

python: python-build python-environment
	@$(MAKE) --no-print-directory python-tests

# What `scripts/test` calls: cargo would wait there for what runs beside it.
python-tests:
	PYTHONPATH=$(CURDIR)/python $(ENVIRONMENT)/bin/python -m pytest -q -n 3 --dist loadfile $(PYTEST)

python-lint: python-environment
	$(ENVIRONMENT)/bin/ruff check python docs/site scripts/circles
	$(ENVIRONMENT)/bin/ruff format --check python docs/site scripts/circles
	$(ENVIRONMENT)/bin/mypy
	$(ENVIRONMENT)/bin/mypy --strict scripts/circles

# Writes the functions of all disciplines from the registry.
python-disciplines: python-build python-environment
	PYTHONPATH=python $(ENVIRONMENT)/bin/python python/generate_disciplines.py python/fairgate/disciplines.py
	$(ENVIRONMENT)/bin/ruff format python/fairgate/disciplines.py

# Writes the client of the API from the OpenAPI document of a run. Needs root: it is in a network namespace.
python-client: python-build python-environment
	$(ENVIRONMENT)/bin/python python/tests/live_run.py $(TARGET)/debug/fairgate python/openapi.json
	$(ENVIRONMENT)/bin/python python/generate_client.py python/fairgate/client python/openapi.json

docs-environment:
	@scripts/python-environment $(TARGET)/docs docs/site/requirements.txt

# docs/site/README.md says what it is made from.
docs: python-build docs-environment
	$(TARGET)/docs/bin/python docs/site/build.py $(TARGET)/debug/fairgate $(TARGET)

# Runs the tutorials and writes them as notebooks with their outputs.
tutorials: python-build python-environment
	PYTHONPATH=$(CURDIR)/python $(ENVIRONMENT)/bin/python python/write_tutorials.py docs/tutorials/*.py

wheel: python-environment
	$(ENVIRONMENT)/bin/maturin build --profile dist --out $(TARGET)/wheels

# `make test` tests it as a member of the workspace.
own-discipline:
	scripts/try-own-discipline

bench:
	cargo bench --workspace

# On a machine that does nothing else. QUICK=1 tries it in a few minutes and writes to the target folder.
figures: tools
	cargo run --quiet -p fairgate-evidence -- figures $(if $(filter-out 0,$(QUICK)),--quick)

# DIR is a checkout of dummynet, whose schedulers are measured beside ours.
peers:
	$(if $(DIR),,$(error DIR is missing: `make peers DIR=dummynet` with a checkout of dummynet's sources))
	cargo run --quiet -p fairgate-evidence -- figures --peers "$(abspath $(DIR))"

# Exit code 1 says that a claim does not hold. qfq-table3 and qfq-fig9 are judged by times: nothing else
# should run then.
verdicts: tools
	cargo build --profile dist -p fairgate-evidence
	$${CARGO_TARGET_DIR:-target}/dist/fairgate-lab reproduce all --verdicts docs/experiments/verdicts.csv \
		--commit $$(git rev-parse --short HEAD) || test $$? -eq 1

verdicts-live:
	cargo build --profile dist -p fairgate-evidence
	$${CARGO_TARGET_DIR:-target}/dist/fairgate-lab reproduce all --live \
		--verdicts docs/experiments/verdicts.csv --commit $$(git rev-parse --short HEAD) || test $$? -eq 1

# PREFIX is /usr/local by default, LIBDIR is PREFIX/lib. DESTDIR is put before both, for packages.
# In one build, the C library would get the features of the program: to record scripts.
install:
	cargo build --profile dist -p fairgate-cli
	cargo build --profile dist -p fairgate-ffi
	install -D -m 755 $${CARGO_TARGET_DIR:-target}/dist/fairgate \
		"$(DESTDIR)$(or $(PREFIX),/usr/local)/bin/fairgate"
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" \
		scripts/install-pages $${CARGO_TARGET_DIR:-target}/dist/fairgate
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" \
		scripts/install-library $${CARGO_TARGET_DIR:-target}/dist

# The program, its manual pages, completions, the unit of systemd, examples and licences: docs/service.md.
packages:
	cargo build --profile dist -p fairgate-cli
	scripts/make-packages fairgate $(TARGET)/dist/fairgate $(TARGET)/packages

# Rust is needed here, and not where the packages are installed.
kernel-packages:
	crates/fairgate-kernel/build/object
	cargo build --profile dist -p fairgate-kernel --bin fairgate-qdisc
	scripts/make-packages fairgate-dkms $(TARGET)/dist/fairgate-qdisc $(TARGET)/packages

# Not part of `make test`, but of `.ci/run`.
try-packages: debug-build
	scripts/try-packages $(TARGET)/debug/fairgate

static:
	scripts/build-static

unit:
	@scripts/check-unit

# Not part of `make test`: the packages of ns-3 and DPDK are more than everything else together.
integrations: tools
	cargo build --profile dist -p fairgate-ffi
	scripts/try-integrations $${CARGO_TARGET_DIR:-target}/dist

header:
	FAIRGATE_WRITE_HEADER=1 cargo test --quiet -p fairgate-ffi --test interface header

# Needs gcc, binutils, and the headers of a kernel. The object is the same for all kernels.
kernel:
	crates/fairgate-kernel/build/object
	crates/fairgate-kernel/build/module $(KERNEL)

# Debian's package linux-source has a tree. CASES= chooses files or cases, like CASES='htb 0904'.
tc-testing:
	@test -n '$(KERNEL)' || { echo 'give a kernel source tree: make tc-testing KERNEL=DIR' >&2; exit 2; }
	cargo run --quiet -p fairgate-evidence -- tc-testing '$(KERNEL)' $(CASES)

# Not part of `make test`. KERNELS= and TESTS= choose, like KERNELS=6.12 TESTS='clocked parallel'.
kernel-check: tools
	scripts/kernel/check

kernel-test: tools
	scripts/kernel/test $(addprefix --kernel ,$(KERNELS)) $(TESTS)

# Building that kernel takes some 15 minutes, once; what it costs is not measured.
kernel-debug: tools
	scripts/kernel/test --kernel debug $(or $(TESTS),clocked parallel)

lint: unit python-lint no-std rust-lint

# The second clippy is of the program that `make demo` builds.
rust-lint:
	cargo fmt --all --check
	scripts/line-length
	scripts/circles
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p fairgate-cli --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# The library and its dependencies may use an allocator, but not the standard library. If the target can't be
# installed, for example without a network, nothing is checked, and a message says so.
no-std:
	@if rustup target add $(BARE); then \
		cargo check -p fairgate --no-default-features --target $(BARE); \
	else \
		echo 'SKIPPED: no-std needs the target $(BARE), which could not be installed' >&2; \
	fi

# Packs the working tree, including uncommitted changes. cargo warns that no repository is named yet.
package:
	cargo package $(PUBLISHED) --allow-dirty

# Needs the network only for crates of Cargo.lock that are not downloaded yet.
deny:
	scripts/cargo-tool deny check licenses bans sources

advisories:
	scripts/cargo-tool deny check advisories

# Checks only the libraries: the program's interface for other crates is one function.
semver:
	scripts/cargo-tool semver-checks --baseline-rev $(BASELINE) $(PUBLISHED) --exclude fairgate-cli

# Uses its own target folder. If two compilers share one folder, each of them builds everything again.
msrv:
	rustup toolchain install $(RUST_VERSION) --profile minimal --no-self-update
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-target}/msrv cargo +$(RUST_VERSION) check --workspace --all-targets

# The `unsafe` code that makes no system calls: the C library, and rings and frames shared with the kernel.
miri:
	rustup toolchain install nightly --profile minimal --component miri,rust-src --no-self-update
	PROPTEST_CASES=3 MIRIFLAGS=-Zmiri-disable-isolation \
		cargo +nightly miri test -p fairgate-ffi --test interface same_answers
	MIRIFLAGS=-Zmiri-disable-isolation \
		cargo +nightly miri test -p fairgate-live --lib -- xdp_ring sys::chunks sys::frames
