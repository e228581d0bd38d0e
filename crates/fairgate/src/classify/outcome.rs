//! What a filter does with the packets that match its conditions.

use crate::classify::computed::Computed;
use crate::classify::masked::Masked;
use crate::packet::ClassId;
use crate::pool::{PacketId, Pool};

/// What becomes of a packet that matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It goes to the class with this minor number, which belongs to the filter's discipline.
    Class(u32),
    /// It goes to a class that is computed from its fields.
    Computed(Computed),
    /// It is classified as if no filter had matched: by the default, or by the discipline's own rule.
    #[default]
    Unclassified,
    /// It is dropped.
    Drop,
    /// The next filters are tried.
    Continue,
    /// The filters of this chain are tried. If none of them matches, it is unclassified. After 16 such steps
    /// the packet is dropped, as in Linux (`tcf_classify`).
    Chain(u32),
}

impl Outcome {
    /// The class, if it is always the same.
    pub fn class(&self) -> Option<u32> {
        match self {
            Outcome::Class(class) => Some(*class),
            _ => None,
        }
    }

    /// The computation of the class, if there is one.
    pub fn computed(&self) -> Option<&Computed> {
        match self {
            Outcome::Computed(computed) => Some(computed),
            _ => None,
        }
    }

    /// Returns the outcome with each class, or the first one of a computation, replaced by that of `replace`.
    #[must_use]
    pub fn map_class(self, replace: impl Fn(u32) -> u16) -> Outcome {
        match self {
            Outcome::Class(class) => Outcome::Class(replace(class).into()),
            Outcome::Computed(computed) => {
                Outcome::Computed(computed.starting_at(replace(computed.first().into())))
            }
            other => other,
        }
    }
}

/// The class with this number.
impl From<u32> for Outcome {
    fn from(class: u32) -> Outcome {
        Outcome::Class(class)
    }
}

/// Fields of a packet's descriptor that a filter changes. A field that is left out stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The priority, 0 to 15. The packet then names no class: in Linux priority and class are one number
    /// (`skb->priority`).
    pub priority: Option<u8>,
    /// The class that the packet names from then on, for disciplines further down the tree. The priority
    /// becomes 0.
    pub class: Option<ClassId>,
    /// The bits of the driver's mark that are set.
    pub mark: Option<Masked<u32>>,
    /// The DSCP, 0 to 63. The driver writes it into the packet's bytes.
    pub dscp: Option<u8>,
}

impl Edit {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    pub(super) fn apply(&self, id: PacketId, pool: &mut Pool) {
        let packet = &mut pool[id];
        if let Some(priority) = self.priority {
            packet.priority = priority;
            packet.class = ClassId::NONE;
        }
        if let Some(class) = self.class {
            packet.class = class;
            packet.priority = 0;
        }
        if let Some(bits) = self.mark {
            packet.mark = packet.mark & !bits.mask() | bits.value();
        }
        if let Some(dscp) = self.dscp {
            pool.remark(id, dscp);
        }
    }
}
