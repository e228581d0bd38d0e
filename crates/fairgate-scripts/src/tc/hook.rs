//! The hooks of a device: the qdiscs `ingress` and `clsact`.
//!
//! They hold no packets, but filters. The filters of arriving packets are attached to `ffff:` of `ingress`,
//! or to `ffff:fff2` of `clsact` (`ingress` for short); those of leaving packets to `ffff:fff3` (`egress`).

use fairgate::ClassId;

use super::script::Qdisc;
use crate::script::Word;

/// The place of both: TC_H_INGRESS and TC_H_CLSACT.
pub(super) const PLACE: ClassId = ClassId::new(HANDLE, 0xfff1);
/// The handle of both.
pub(super) const HANDLE: u16 = 0xffff;
/// What the filters of arriving packets are attached to: TC_H_MIN_INGRESS.
pub(super) const ARRIVING: ClassId = ClassId::new(HANDLE, 0xfff2);
/// What the filters of leaving packets are attached to: TC_H_MIN_EGRESS.
pub(super) const LEAVING: ClassId = ClassId::new(HANDLE, 0xfff3);

/// Whether the kind is one of them.
pub(super) fn is_hook(kind: &Word) -> bool {
    matches!(kind.get_ref().as_str(), "ingress" | "clsact")
}

impl Qdisc {
    /// Whether it is `ingress` or `clsact`.
    pub(super) fn is_hook(&self) -> bool {
        self.parent == Some(PLACE)
    }

    /// Returns what a filter of this hook is attached to: [`ARRIVING`] or [`LEAVING`]. `ingress` has only
    /// filters of arriving packets, and `clsact` needs to know (`clsact_tcf_block` in sch_ingress.c).
    pub(super) fn filters_at(&self, parent: ClassId) -> Result<ClassId, &'static str> {
        match (self.kind.get_ref().as_str(), parent) {
            ("clsact", ARRIVING | LEAVING) => Ok(parent),
            ("clsact", _) => Err("a filter of `clsact` is attached to `ingress` or to `egress`"),
            (_, LEAVING) => Err("`ingress` has no filters for packets that leave, but `clsact` has"),
            _ => Ok(ARRIVING),
        }
    }
}
