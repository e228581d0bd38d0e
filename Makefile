# What people type. Everything else is plain cargo.

.PHONY: help demo test bench lint tools

help:
	@echo 'make demo    compare queueing disciplines on a simulated home line and on recorded traffic; writes two reports'
	@echo 'make test    all tests (as root also those on live traffic, in network namespaces)'
	@echo 'make bench   all benchmarks; see docs/performance.md'
	@echo 'make lint    formatting, clippy, documentation'

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

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
