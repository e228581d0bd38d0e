//! Decides whether output is coloured, for every command, by the rules that clap uses for help and usage.
//!
//! The standards are <https://no-color.org> and <https://bixense.com/clicolors>: `NO_COLOR` and `TERM=dumb`
//! ask for none, `CLICOLOR_FORCE` for colours in a pipe too.

use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};

/// Returns whether results on standard output are coloured.
pub fn for_stdout() -> bool {
    is_wanted(&io::stdout())
}

/// Returns whether errors on standard error are coloured.
pub fn for_stderr() -> bool {
    is_wanted(&io::stderr())
}

fn is_wanted(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}
