//! Chains of filters: what is said about those that nothing leads to, or that are empty.

use std::collections::BTreeSet;

use crate::script::notes::Notes;
use crate::script::{Word, number};
use crate::tc::objects::Filter;

/// Returns the chains to which the actions of a filter lead, and where they are named.
fn goals(filter: &Filter) -> impl Iterator<Item = (u32, &Word)> {
    filter.options.windows(3).filter_map(|words| match words {
        [goto, chain, value] if goto.get_ref() == "goto" && chain.get_ref() == "chain" => {
            Some((number(value.get_ref())?, value))
        }
        _ => None,
    })
}

/// Notes filters in a chain to which no filter leads, and chains without filters to which one leads.
pub(super) fn check(filters: &[&Filter], notes: &mut Notes) {
    let place = |filter: &Filter, chain| (filter.class(), chain);
    let led_to: BTreeSet<_> = filters
        .iter()
        .flat_map(|filter| goals(filter).map(|(chain, _)| place(filter, chain)))
        .collect();
    let filled: BTreeSet<_> = filters
        .iter()
        .map(|filter| place(filter, filter.chain()))
        .collect();
    let mut said = BTreeSet::new();
    for filter in filters {
        let chain = filter.chain();
        let own = place(filter, chain);
        if chain != 0 && !led_to.contains(&own) && said.insert(own) {
            let text = format!("no filter goes to chain {chain}: its filters are never tried");
            notes.add(filter.kind.span(), text);
        }
        for (chain, word) in goals(filter) {
            if !filled.contains(&place(filter, chain)) {
                let text =
                    format!("chain {chain} has no filters: as in Linux, these packets are unclassified");
                notes.add(word.span(), text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairgate_config::Spec;

    use crate::tc::{Device, Script};

    const QDISC: &str = "qdisc add dev e root handle 1: drr
        class add dev e parent 1: classid 1:1 drr
        class add dev e parent 1: classid 1:2 drr\n";

    fn translated(lines: &str) -> (Spec, Vec<String>) {
        let text = format!("{QDISC}{lines}");
        let mut trees = Script::translate_all("test.tc", &text, Device::default())
            .unwrap_or_else(|error| panic!("{lines}: {:?}", error.problems()));
        let tree = trees.remove(0);
        (tree.spec, tree.warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn filters_of_a_chain_are_tried_when_one_leads_there() {
        let (spec, warnings) = translated(
            "chain add dev e parent 1: chain 7
            filter add dev e parent 1: chain 7 protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:1
            filter add dev e parent 1: chain 7 protocol ip prio 2 matchall flowid 1:2
            filter add dev e parent 1: protocol ip prio 1 flower src_ip 10.0.0.0/8 action skbedit mark 3 \
             goto chain 7",
        );
        assert_eq!(warnings, [""; 0]);
        let text = spec.to_string();
        for line in [
            "source=10.0.0.0/8, outer_ethertype=ipv4 goes to chain 7 (set_mark=3)",
            "destination_port=22, outer_ethertype=ipv4 goes to 1 (chain=7)",
            "outer_ethertype=ipv4 goes to 2 (chain=7)",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn chains_that_are_empty_or_never_reached_have_a_warning() {
        let (_, warnings) = translated(
            "filter add dev e parent 1: chain 3 prio 1 matchall flowid 1:2
            filter add dev e parent 1: prio 1 u32 match ip dport 22 0xffff action goto chain 4",
        );
        assert!(
            warnings
                .iter()
                .any(|text| text.contains("no filter goes to chain 3")),
            "{warnings:?}"
        );
        assert!(
            warnings
                .iter()
                .any(|text| text.contains("chain 4 has no filters")),
            "{warnings:?}"
        );
    }

    /// Each chain has priorities of its own, and is deleted by itself.
    #[test]
    fn a_chain_is_deleted_by_itself() {
        let lines = "filter add dev e parent 1: chain 3 protocol ip prio 1 matchall flowid 1:2
            filter add dev e parent 1: protocol ipv6 prio 1 matchall flowid 1:1\n";
        let filters = |more: &str| translated(&format!("{lines}{more}")).0.classifier().filters.len();
        assert_eq!(filters(""), 2);
        assert_eq!(filters("filter del dev e parent 1: chain 3 prio 1"), 1);
        assert_eq!(filters("chain del dev e parent 1: chain 3"), 1);
        assert_eq!(filters("filter del dev e parent 1:"), 1);
    }
}
