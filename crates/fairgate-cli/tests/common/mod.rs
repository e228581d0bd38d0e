//! What the tests of live traffic share.

use std::io::Write;

use nix::unistd::geteuid;

/// Whether network namespaces can be made. Says so on standard error if not: a test that did not run is no test that
/// passed.
pub(crate) fn can_build_networks(test: &str) -> bool {
    if geteuid().is_root() {
        return true;
    }
    // Past the test harness, which swallows what `eprintln!` says.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {test} needs root to build network namespaces, and this process is not root"
    );
    false
}
