//! LibreQoS' files as they are: `ShapedDevices.csv` and `network.json`. The formats are those of its
//! documentation and of its own reader, up to version 1.5.

mod devices;
mod network;

pub(crate) use devices::{Columns, read as read_devices};
pub(crate) use network::{CHILDREN, DEPTH, Network, RATES, read as read_network};

/// The number of `network.json` among the texts of a list. `ShapedDevices.csv` is the first one.
pub(crate) const NETWORK: usize = 1;
