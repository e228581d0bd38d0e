//! Progress on standard error: if that is a terminal, and the result isn't for a program.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Format;

/// By bytes of a file; without a size, by bytes alone.
pub(crate) fn bytes(size: Option<u64>, format: Format) -> ProgressBar {
    match size {
        Some(size) => bar(
            size,
            "{bar:40} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
            format,
        ),
        None => bar(0, "{spinner} {bytes} {bytes_per_sec}", format),
    }
}

/// By simulated time of all simulations together, ms.
pub(crate) fn simulated(millis: u64, format: Format) -> ProgressBar {
    bar(millis, "{bar:40} simulating, {percent} %, {eta} left", format)
}

/// By steps, with what is being done now.
pub(crate) fn steps(count: u64, format: Format) -> ProgressBar {
    bar(count, "{bar:40} {pos}/{len} {msg}", format)
}

/// By trials, with what is being tried.
pub(crate) fn trials(count: u64, format: Format) -> ProgressBar {
    bar(count, "{bar:40} {percent} %, {eta} left, {msg}", format)
}

/// By a share, with a message about what is being done now.
pub(crate) fn share(format: Format) -> ProgressBar {
    bar(0, "{bar:40} {percent} %, {eta} left, {msg}", format)
}

/// By a message about what is being done now.
pub(crate) fn stages(format: Format) -> ProgressBar {
    let bar = bar(0, "{spinner} {msg}", format);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn bar(length: u64, template: &str, format: Format) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    let target = match format {
        Format::Text => ProgressDrawTarget::stderr_with_hz(10),
        Format::Json => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(Some(length), target).with_style(style)
}
