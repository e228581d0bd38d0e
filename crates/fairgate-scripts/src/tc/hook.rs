//! The hooks of a device: the qdiscs `ingress` and `clsact`.
//!
//! They hold no packets, but filters. The filters of arriving packets are attached to `ffff:` of `ingress`,
//! or to `ffff:fff2` of `clsact` (`ingress` for short); those of leaving packets to `ffff:fff3` (`egress`).

use fairgate::ClassId;

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
