//! What tells a class from others, in this run and in the next one.
//!
//! A class of a tree is told by its path, as `20/3`. But the number of a subscriber's class is given anew by
//! each run, and so is that of a host: there the name is in the place of the number, in quotation marks.

use fairgate_run_api::NodeStatus;

/// Returns what tells the class at a path below this root from others, or nothing if it is not there.
pub(super) fn of(root: &NodeStatus, path: &str) -> Option<String> {
    let mut node = root;
    let mut identity = String::new();
    for number in path.split('/') {
        let number: u32 = number.parse().ok()?;
        node = node
            .classes
            .iter()
            .find(|class| class.class.unwrap_or(0) == number)?;
        add(&mut identity, node);
    }
    Some(identity)
}

/// Calls a function with the path of each class below this root, and with what tells it from others.
pub(super) fn each(root: &NodeStatus, visit: &mut dyn FnMut(&str, &str)) {
    below(root, "", "", visit);
}

fn below(node: &NodeStatus, path: &str, identity: &str, visit: &mut dyn FnMut(&str, &str)) {
    for class in &node.classes {
        let number = class.class.unwrap_or(0);
        let path = match path.is_empty() {
            true => number.to_string(),
            false => format!("{path}/{number}"),
        };
        let mut identity = identity.to_owned();
        add(&mut identity, class);
        visit(&path, &identity);
        below(class, &path, &identity, visit);
    }
}

fn add(identity: &mut String, class: &NodeStatus) {
    if !identity.is_empty() {
        identity.push('/');
    }
    let subscriber = class.subscriber.as_ref().map(|subscriber| &subscriber.id);
    identity.push_str(&match subscriber.or(class.host.as_ref()) {
        Some(name) => format!("{name:?}"),
        None => class.class.unwrap_or(0).to_string(),
    });
}
