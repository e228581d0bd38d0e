//! What the list does not have, and why.

use serde::Serialize;

/// Something that the server has and the list has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// What it is.
    pub of: Kind,
    /// The identifier of the subscriber, the node or the device.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: Reason,
    /// The address, if that is what is left out.
    pub address: Option<String>,
}

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A subscriber with all its addresses.
    Subscriber,
    /// An address of a subscriber, which has others perhaps.
    Address,
    /// A device.
    Device,
    /// The limits of a node, which shapes nothing then.
    Node,
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The customer is suspended, or blocked.
    Suspended,
    /// It has no rate for each direction, or one below 10 kbit/s or above 1 Tbit/s.
    NoRates,
    /// It has no address, or none is left.
    NoAddress,
    /// Its identifier is that of another one.
    Twice,
    /// Another subscriber has the same address.
    Shared,
    /// The prefix contains addresses of other subscribers.
    Contains,
    /// It is no address or prefix.
    NoPrefix,
    /// The device is at no site.
    NoSite,
    /// At most six nodes may be above one another.
    TooDeep,
}

impl Reason {
    /// Says it in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Suspended => "suspended",
            Reason::NoRates => "no rates",
            Reason::NoAddress => "no address",
            Reason::Twice => "given twice",
            Reason::Shared => "several subscribers have this address",
            Reason::Contains => "contains addresses of other subscribers",
            Reason::NoPrefix => "not an address",
            Reason::NoSite => "at no site",
            Reason::TooDeep => "above six other levels: shapes nothing",
        }
    }
}
