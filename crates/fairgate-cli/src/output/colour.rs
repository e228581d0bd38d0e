//! Whether what is printed is coloured: decided here for every command, as clap decides it for help and
//! usage.
//!
//! The standards are <https://no-color.org> and <https://bixense.com/clicolors>: `NO_COLOR` and `TERM=dumb`
//! ask for none, `CLICOLOR_FORCE` for colours in a pipe too.

use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use miette::MietteHandlerOpts;

/// Results.
pub(crate) fn for_stdout() -> bool {
    is_wanted(&io::stdout())
}

/// Has errors follow the same rules.
pub(crate) fn install() {
    let handler = Box::new(|_: &_| {
        let options = MietteHandlerOpts::new().color(is_wanted(&io::stderr()));
        Box::new(options.build()) as Box<dyn miette::ReportHandler>
    });
    // Fails if there is one already: this is the only call.
    let _ = miette::set_hook(handler);
}

fn is_wanted(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}
