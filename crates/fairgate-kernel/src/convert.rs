//! From a checked description to a tree for the kernel.

use alloc::vec::Vec;

use fairgate::registry::tree::size;
use fairgate::registry::{ClassSettings, ParameterInfo, Setting, Settings, Value};
use fairgate_config::Spec;

use crate::form::Refused;
use crate::tree::Tree;

/// Returns the tree as the kernel builds it.
///
/// # Errors
/// Only if the tree breaks a rule of the compact form that the description does not know.
pub fn tree_of(spec: &Spec) -> Result<Tree, Refused> {
    let given = |(index, (info, value)): (usize, (ParameterInfo, Value))| -> Option<Setting> {
        spec.is_given(info.name).then_some((index, value))
    };
    let has_classes = spec.entry().about().children.are_classes();
    let (mut classes, mut children) = (Vec::new(), Vec::new());
    for class in spec.classes() {
        let child = class.tree.map(tree_of).transpose();
        let before = || 1 + children.iter().map(size).sum::<u32>();
        let child = child.map_err(|refused| refused.behind(before()))?;
        children.extend(child);
        if has_classes {
            let values = class.parameters.into_iter().map(|(_, value)| value);
            classes.push(ClassSettings {
                minor: class.minor,
                template: class.template.cloned(),
                settings: values.enumerate().collect(),
            });
        }
    }
    let settings = Settings {
        own: spec
            .parameters()
            .into_iter()
            .enumerate()
            .filter_map(given)
            .collect(),
        classes,
        classifier: spec.classifier().clone(),
    };
    Tree::new(spec.entry(), settings, children)
}
