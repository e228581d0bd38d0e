//! Progress bars on standard error. They are shown only on a terminal, and not with `--json`.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::command::output::Format;

/// Shows the bytes read of a file. If the size is unknown, shows only the bytes.
pub fn bytes(size: Option<u64>, format: Format) -> ProgressBar {
    match size {
        Some(size) => bar(
            size,
            "{bar:40} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
            format,
        ),
        None => bar(0, "{spinner} {bytes} {bytes_per_sec}", format),
    }
}

/// Shows the simulated time of all simulations together, in ms.
pub fn simulated(millis: u64, format: Format) -> ProgressBar {
    bar(millis, "{bar:40} simulating, {percent} %, {eta} left", format)
}

/// Shows the number of steps, and a message about the current step.
pub fn steps(count: u64, format: Format) -> ProgressBar {
    bar(count, "{bar:40} {pos}/{len} {msg}", format)
}

/// Shows the share of trials, and a message about the current trial.
pub fn trials(count: u64, format: Format) -> ProgressBar {
    bar(count, "{bar:40} {percent} %, {eta} left, {msg}", format)
}

/// Shows a share, and a message about the current work.
pub fn share(format: Format) -> ProgressBar {
    bar(0, "{bar:40} {percent} %, {eta} left, {msg}", format)
}

/// Shows a message about the current work.
pub fn stages(format: Format) -> ProgressBar {
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
