//! Classifies packets: from a packet to a class of a classful discipline.

mod average;
mod bytes;
mod class_map;
mod classifier;
mod computed;
mod filter;
mod filters;
mod hosts;
mod index;
mod masked;
mod outcome;
mod police;

pub use average::Average;
pub use bytes::{Bytes, BytesOf};
pub use class_map::ClassMap;
pub use classifier::{Classifier, Filtered};
pub use computed::{Computed, Field, Fields, Rule};
pub use filter::{Filter, Match, Prefix};
pub use filters::Filters;
pub(crate) use hosts::Hosts;
pub use hosts::{AddressMask, Holder, Host, HostBy, Template, Templates, Tenant};
pub use masked::Masked;
pub use outcome::{Edit, Outcome};
pub use police::{Control, Measure, Police};
