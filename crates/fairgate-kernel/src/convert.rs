//! From a checked description to a tree for the kernel.

use alloc::vec::Vec;

use fairgate::registry::Described;
use fairgate::registry::tree::size;
use fairgate_config::Spec;

use crate::form::Refused;
use crate::tree::Tree;

/// Returns the tree as the kernel builds it.
///
/// # Errors
/// Only if the tree breaks a rule of the compact form that the description does not know.
pub fn tree_of(spec: &Spec) -> Result<Tree, Refused> {
    let (mut children, mut before) = (Vec::new(), 1);
    for child in spec.children() {
        let child = tree_of(child).map_err(|refused| refused.behind(before))?;
        before += size(&child);
        children.push(child);
    }
    Tree::new(spec.entry(), spec.settings().clone(), children)
}
