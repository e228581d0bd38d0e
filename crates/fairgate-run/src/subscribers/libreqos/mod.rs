//! LibreQoS' files as they are: `ShapedDevices.csv` and `network.json`. The formats are those of its
//! documentation and of its own reader, up to version 1.5.

mod devices;
mod network;

pub(crate) use devices::{Columns, read as read_devices};
pub(crate) use network::{Network, read as read_network};
