//! Decides whether output is coloured, for every command, by the rules that clap uses for help and usage.
//!
//! The standards are <https://no-color.org> and <https://bixense.com/clicolors>: `NO_COLOR` and `TERM=dumb`
//! ask for none, `CLICOLOR_FORCE` for colours in a pipe too.

use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use miette::MietteHandlerOpts;

/// Returns whether results on standard output are coloured.
pub(crate) fn for_stdout() -> bool {
    is_wanted(&io::stdout())
}

/// Makes errors follow the same rules.
pub(crate) fn install() {
    let handler = Box::new(|_: &_| {
        let options = MietteHandlerOpts::new().color(is_wanted(&io::stderr()));
        Box::new(options.build()) as Box<dyn miette::ReportHandler>
    });
    // Fails only if a hook is already set. This is the only call.
    let _ = miette::set_hook(handler);
}

fn is_wanted(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}
