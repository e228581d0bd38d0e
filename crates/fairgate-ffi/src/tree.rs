//! Checked descriptions of trees.

use std::ffi::c_char;
use std::ptr;

use fairgate_config::{Document, Spec};
use fairgate_scripts::tc::{Device, Script};

use crate::call::{create, mistakes, or, text, to_c};

/// A checked description of a tree of disciplines. Any number of nodes can be made from it.
#[derive(Debug)]
pub struct Tree {
    pub(crate) spec: Spec,
}

impl Tree {
    fn of(spec: Spec) -> Tree {
        Tree { spec }
    }
}

/// Reads a tree from one line: a discipline and its settings, and after each `/` the discipline that it
/// holds.
/// `fairgate list` prints all disciplines. Example: "tbf rate=20mbit burst=5kb / fq_codel target=5ms".
/// Returns NULL if the line has mistakes. `fairgate_tree_free` frees the tree.
///
/// # Safety
/// `line` must be a string, and `error` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_tree_from_line(line: *const c_char, error: *mut *mut c_char) -> *mut Tree {
    // SAFETY: as the caller promises.
    unsafe {
        create(error, || {
            let line = text(line, "the line")?;
            Spec::inline(line).map(Tree::of).map_err(|error| mistakes(&error))
        })
    }
}

/// Reads a tree from TOML: the table [queue.NAME] with this name. `name` may be NULL if there is only one.
/// docs/configuration.md describes the language. Returns NULL if the text has mistakes, or has no such tree.
///
/// # Safety
/// `toml` must be a string, `name` a string or NULL, and `error` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_tree_from_toml(
    toml: *const c_char,
    name: *const c_char,
    error: *mut *mut c_char,
) -> *mut Tree {
    // SAFETY: as the caller promises.
    unsafe {
        create(error, || {
            let toml = text(toml, "the configuration")?;
            let document = Document::parse("configuration", toml).map_err(|error| mistakes(&error))?;
            let wanted = match name.is_null() {
                true => None,
                false => Some(text(name, "the name")?),
            };
            only(document.queues(), wanted, "queue").map(Tree::of)
        })
    }
}

/// Reads a tree from commands of tc: lines of `tc qdisc`, `tc class` and `tc filter`, as in a shell script.
/// `device` may be NULL if all lines are for one device. `mtu` is the longest IP packet of the device in
/// bytes, on which defaults of tc depend; 0 means 1500. Returns NULL if a line has a mistake.
///
/// # Safety
/// `script` must be a string, `device` a string or NULL, and `error` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_tree_from_tc(
    script: *const c_char,
    device: *const c_char,
    mtu: u32,
    error: *mut *mut c_char,
) -> *mut Tree {
    // SAFETY: as the caller promises.
    unsafe {
        create(error, || {
            let script = text(script, "the script")?;
            let wanted = match device.is_null() {
                true => None,
                false => Some(text(device, "the device")?),
            };
            let mut properties = Device::default();
            if mtu != 0 {
                properties.mtu = mtu;
            }
            let translated =
                Script::translate_all("script", script, properties).map_err(|error| mistakes(&error))?;
            let trees = translated.iter().map(|tree| (tree.device.as_str(), &tree.spec));
            only(trees, wanted, "device").map(Tree::of)
        })
    }
}

/// Returns the tree called `wanted`, or the only one.
fn only<'t>(
    trees: impl Iterator<Item = (&'t str, &'t Spec)>,
    wanted: Option<&str>,
    kind: &str,
) -> Result<Spec, String> {
    let trees: Vec<(&str, &Spec)> = trees.collect();
    let names = || {
        let names: Vec<String> = trees.iter().map(|(name, _)| format!("`{name}`")).collect();
        names.join(", ")
    };
    match wanted {
        _ if trees.is_empty() => Err(format!("there is no {kind}; describe a tree")),
        Some(wanted) => trees
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, spec)| (*spec).clone())
            .ok_or_else(|| format!("there is no {kind} `{wanted}`; there is {}", names())),
        None if trees.len() == 1 => Ok(trees[0].1.clone()),
        None => Err(format!("there are several trees; name the {kind}: {}", names())),
    }
}

/// Returns the tree as TOML with the table [queue.NAME]. `fairgate_string_free` frees the text. Returns NULL
/// if a pointer is NULL.
///
/// # Safety
/// `tree` must be from this library or NULL, and `name` a string or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_tree_to_toml(tree: *const Tree, name: *const c_char) -> *mut c_char {
    or(ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let (tree, name) = unsafe { (tree.as_ref(), text(name, "the name")) };
        match (tree, name) {
            (Some(tree), Ok(name)) => to_c(tree.spec.to_toml(name)),
            _ => ptr::null_mut(),
        }
    })
}

/// Frees a tree. Nodes that were made from it stay. NULL is allowed.
///
/// # Safety
/// `tree` must be from this library or NULL, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_tree_free(tree: *mut Tree) {
    if !tree.is_null() {
        // SAFETY: the caller promises that it is from `create`, and not freed yet.
        or((), || drop(unsafe { Box::from_raw(tree) }));
    }
}
