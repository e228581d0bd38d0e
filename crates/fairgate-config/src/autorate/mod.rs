//! Rates that follow a line, as far as they have to do with text: their settings in a file, and the rate at
//! the root of a tree. The algorithm is [`fairgate::autorate`].

mod root_rate;
mod section;

pub use root_rate::RootRate;
pub use section::{TUNING, bounds_section, read_bounds, read_tuning};
