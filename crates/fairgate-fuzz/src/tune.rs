//! Reads what a server of iperf3 or netperf answers to `fairgate tune`, with [`fairgate_cli::any_answer`].

/// The first two bytes say which server it is, and who sends. The rest is what it answers. Returns whether a
/// whole test was made of it.
pub fn tune(bytes: &[u8]) -> bool {
    fairgate_cli::any_answer(bytes)
}
