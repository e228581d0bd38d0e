//! Text that is compared to the last letter with a file.

use std::path::Path;

/// Compares text with a file. After an intended change, `FAIRGATE_BLESS=1` writes it again.
#[track_caller]
pub(crate) fn assert_snapshot(path: &Path, text: &str) {
    if std::env::var_os("FAIRGATE_BLESS").is_some() {
        std::fs::write(path, text).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{}: if the change is intended, run the test with FAIRGATE_BLESS=1 and check the difference",
        path.display()
    );
}
