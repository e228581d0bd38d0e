//! What tc displays: words with values, rows of statistics, and the qdiscs and classes that have them.
//!
//! The table of kinds says what is displayed of each discipline; `show` collects it for a tree.

mod detail;
mod running;
mod seen;
mod shown;
mod state;
mod tree;

pub use detail::{Amount, Detail, When};
pub(super) use detail::{bucket, bytes, in_cells, link_layer, packets, plain, rate, size, ticks};
pub use running::Row;
pub(super) use running::{Running, aligned, row};
pub(super) use seen::{Seen, value};
pub use shown::{Hosts, Id, Shown};
pub use state::State;
pub use tree::{ClassState, EstimatedRate, TreeState};
