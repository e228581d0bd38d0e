//! Common code of the tests with live traffic.

use std::io::Write;

use nix::unistd::geteuid;

/// Returns whether network namespaces can be created. If not, says so on standard error, so that a skipped
/// test does not look like a passed one.
pub(crate) fn can_build_networks(test: &str) -> bool {
    if geteuid().is_root() {
        return true;
    }
    // Written directly, because the test harness captures what `eprintln!` prints.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {test} needs root to build network namespaces, and this process is not root"
    );
    false
}
