# The commands that people type. Everything else is plain cargo.

# The tag, branch or commit that `make semver` compares with. Default: where this branch left main.
BASELINE ?= $(shell git merge-base HEAD main)
# The crates that are published: all except fairgate-fuzz, which is useful only here.
PUBLISHED = --workspace --exclude fairgate-fuzz
# A target without a standard library. Code that uses one does not compile there.
BARE = x86_64-unknown-none
RUST_VERSION = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help demo test bench lint no-std package deny advisories semver msrv tools

help:
	@echo 'make demo        compare disciplines on a simulated link and on recorded traffic'
	@echo 'make test        all tests (as root also those on live traffic, in network namespaces)'
	@echo 'make bench       all benchmarks; see docs/performance.md'
	@echo 'make lint        formatting, length of lines, clippy, documentation, and no-std'
	@echo 'make no-std      the library builds for a machine without an operating system'
	@echo 'make package     every published crate is packed and built from its package alone'
	@echo 'make deny        licences, bans and sources of all dependencies'
	@echo 'make advisories  known vulnerabilities of all dependencies; fetches the database from GitHub'
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

lint: no-std
	cargo fmt --all --check
	scripts/line-length
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# The library and its dependencies may use an allocator, but nothing else of the standard library. If the
# target cannot be installed, because there is no network, the check is skipped with a message.
no-std:
	@if rustup target add $(BARE); then \
		cargo check -p fairgate --no-default-features --target $(BARE); \
	else \
		echo 'SKIPPED: no-std needs the target $(BARE), which could not be installed' >&2; \
	fi

# Packs the working tree, uncommitted changes included. Cargo warns that no repository is named.
package:
	cargo package $(PUBLISHED) --allow-dirty

# Needs the network only for packages in Cargo.lock that are not downloaded yet.
deny:
	scripts/cargo-tool deny check licenses bans sources

advisories:
	scripts/cargo-tool deny check advisories

# The libraries only: the program has no interface for other crates.
semver:
	scripts/cargo-tool semver-checks --baseline-rev $(BASELINE) $(PUBLISHED) --exclude fairgate-cli

# Uses its own target folder. Two compilers that alternate in one folder rebuild everything each time.
msrv:
	rustup toolchain install $(RUST_VERSION) --profile minimal --no-self-update
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-target}/msrv cargo +$(RUST_VERSION) check --workspace --all-targets
