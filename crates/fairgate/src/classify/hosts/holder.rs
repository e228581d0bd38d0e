//! The owner of the packets in a class.

use core::fmt;

use super::{Host, HostBy};
use crate::stats::Statistics;

/// The owner of the packets in a class.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// No particular host: the class was not made from a template.
    Anyone,
    /// The class was made from a template, but no host has it.
    Free,
    /// One host has the class.
    Host(Tenant<'a>),
}

/// A host that has a class. It is displayed like `192.0.2.7`.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    pub(super) by: &'a HostBy,
    pub(super) host: &'a Host,
    pub(super) before: &'a Statistics,
}

impl Tenant<'_> {
    /// Returns the host.
    pub fn host(&self) -> &Host {
        self.host
    }

    /// Returns this host's share of the statistics of the class, without those of previous hosts.
    pub fn statistics(&self, of_class: &Statistics) -> Statistics {
        of_class.since(self.before)
    }
}

impl fmt::Display for Tenant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by.show(self.host, f)
    }
}
