# What people type. Everything else is plain cargo.

# What `make semver` compares with: a tag, a branch or a commit. Where this branch left main, unless it is named.
BASELINE ?= $(shell git merge-base HEAD main)
# The crates that are published: all but fairgate-fuzz and fairgate-figures, which are of use here only.
PUBLISHED = --workspace --exclude fairgate-fuzz --exclude fairgate-figures
# A target that has no standard library: whatever uses one does not compile.
BARE = x86_64-unknown-none
RUST_VERSION = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help demo test bench figures lint no-std package deny advisories semver msrv tools

help:
	@echo 'make demo        compare disciplines on a simulated line and on recorded traffic'
	@echo 'make test        all tests (as root also those on live traffic, in network namespaces)'
	@echo 'make bench       all benchmarks; see docs/performance.md'
	@echo 'make figures     all benchmarks of one build, and their figures into docs/performance.md; needs root'
	@echo 'make lint        formatting, clippy, documentation, and no-std'
	@echo 'make no-std      the library builds for a machine without an operating system'
	@echo 'make package     every published crate is packed and built from its package alone'
	@echo 'make deny        licences, bans and sources of all dependencies'
	@echo 'make advisories  known faults of all dependencies; fetches the database from GitHub'
	@echo 'make semver      changes of public interfaces since this branch left main, or against BASELINE='
	@echo 'make msrv        the oldest supported Rust builds everything'

tools:
	@scripts/install-tools

demo: tools
	cargo build --release -p fairgate-cli
	target/release/fairgate compare
	target/release/fairgate compare --trace examples/recorded.pcap.gz --rate 15mbit --out fairgate-trace.html

test: tools
	cargo test --workspace

bench:
	cargo bench --workspace

# On a machine that does nothing else. QUICK=1 tries it in a few minutes and writes to the target folder.
figures: tools
	cargo run --quiet -p fairgate-figures

lint: no-std
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# The library and its dependencies may use an allocator, and nothing of the standard library. Where the target can't be
# had, because there is no network, nothing is checked, and this is said.
no-std:
	@if rustup target add $(BARE); then \
		cargo check -p fairgate --no-default-features --target $(BARE); \
	else \
		echo 'SKIPPED: no-std needs the target $(BARE), which could not be installed' >&2; \
	fi

# Packs the tree as it is, with what is not committed. No repository is named yet, which cargo warns of.
package:
	cargo package $(PUBLISHED) --allow-dirty

# Needs no network but for what Cargo.lock names and is not here yet.
deny:
	scripts/cargo-tool deny check licenses bans sources

advisories:
	scripts/cargo-tool deny check advisories

# The libraries only: the program has no interface for other crates.
semver:
	scripts/cargo-tool semver-checks --baseline-rev $(BASELINE) $(PUBLISHED) --exclude fairgate-cli

# In a target folder of its own: two compilers that take turns in one folder build everything each time.
msrv:
	rustup toolchain install $(RUST_VERSION) --profile minimal --no-self-update
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-target}/msrv cargo +$(RUST_VERSION) check --workspace --all-targets
