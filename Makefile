# What people type. Everything else is plain cargo.

.PHONY: help demo test bench lint tools

help:
	@echo 'make demo    compare queueing disciplines on a recorded home line; writes fairgate-report.html'
	@echo 'make test    all tests (as root also those on live traffic, in network namespaces)'
	@echo 'make bench   all benchmarks; see docs/performance.md'
	@echo 'make lint    formatting, clippy, documentation'

tools:
	@scripts/install-tools

demo: tools
	cargo run --release -p fairgate-cli -- compare

test: tools
	cargo test --workspace

bench:
	cargo bench --workspace

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
