//! What the classes of a list are called.

use fairgate_run_api::{ClassName, SubscriberName};

use super::list::{List, Node, Subscriber};
use super::numbers::{LINE, NEIGHBOURS, Numbers, OTHERS};
use super::section::Settings;
use super::trees::NEIGHBOURS_MOST;

/// Returns whether two lists with the same settings and numbers call all classes of a direction the same: all
/// that [`names`] looks at.
pub(crate) fn are_same(one: &List, other: &List, side: usize) -> bool {
    let is_same_node = |(one, other): (&Node, &Node)| {
        (&one.name, &one.above, one.rates[side]) == (&other.name, &other.above, other.rates[side])
    };
    let is_same = |(one, other): (&Subscriber, &Subscriber)| {
        one.rates[side].most == other.rates[side].most
            && one.limit == other.limit
            && (&one.id, &one.name, &one.plan, &one.node)
                == (&other.id, &other.name, &other.plan, &other.node)
    };
    one.nodes.len() == other.nodes.len()
        && one.subscribers.len() == other.subscribers.len()
        && one.nodes.iter().zip(&other.nodes).all(is_same_node)
        && one.subscribers.iter().zip(&other.subscribers).all(is_same)
}

/// Names each class of a direction.
pub(crate) fn names<'l>(
    settings: &'l Settings,
    list: &'l List,
    numbers: &'l Numbers,
    side: usize,
) -> impl Iterator<Item = (u32, ClassName)> + use<'l> {
    let line = settings.line[side];
    let own = move |name: &str, node: Option<u32>, limit_bps: u64| ClassName {
        name: name.to_owned(),
        subscriber: None,
        node,
        limit_bps,
    };
    let of_list = [
        (LINE, own("line", None, line)),
        (
            OTHERS,
            own("unknown addresses", Some(LINE), settings.others[side]),
        ),
        (
            NEIGHBOURS,
            own("neighbour discovery", Some(LINE), NEIGHBOURS_MOST.min(line)),
        ),
    ];
    let above = move |node: Option<&String>| node.map_or(Some(LINE), |name| numbers.of_node(name));
    let of_nodes = list.nodes.iter().filter_map(move |node| {
        let name = own(&node.name, above(node.above.as_ref()), node.rates[side]);
        Some((numbers.of_node(&node.name)?, name))
    });
    let of_subscriber = move |one: &Subscriber| {
        let has_name = !one.name.is_empty();
        let name = ClassName {
            name: if has_name { &one.name } else { &one.id }.clone(),
            subscriber: Some(SubscriberName {
                id: one.id.clone(),
                name: has_name.then(|| one.name.clone()),
                plan: one.plan.clone(),
                limited_until_s: one.limit.map(|limit| limit.until_s),
            }),
            node: above(one.node.as_ref()),
            limit_bps: one.rates[side].most.unwrap_or(line),
        };
        Some((numbers.of_subscriber(&one.id)?, name))
    };
    let subscribers = list.subscribers.iter().filter_map(of_subscriber);
    of_list.into_iter().chain(of_nodes).chain(subscribers)
}
