//! Flows of random priority, as in the benchmark of the MSFC thesis: `randomPriority` and `numberOfPrios`.

use std::collections::BTreeMap;

use fairgate_config::{Document, FileError};
use fairgate_sim::{Scenario, derive_seed};
use toml::Spanned;

/// Gives each flow a priority below `number`, and divides its group by it: `TV` becomes `TV, priority 0` and
/// so on. The priorities of a group are dealt like cards: each equally often, in an order that the seed of
/// the scenario decides. So no group is empty. A flow back has the priority of the flow forth.
pub(super) fn deal(
    document: &Document,
    number: &Spanned<u8>,
    scenario: &mut Scenario,
) -> Result<(), FileError> {
    let mut groups: BTreeMap<String, Vec<(u64, usize)>> = BTreeMap::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.count != 1 || flow.arrivals.is_some() {
            return Err(document.error(
                number.span(),
                format!("all flows of `{}` would have one priority", flow.name),
                "write it with `each`, so that each is a flow of its own, or remove this key",
            ));
        }
        let name = flow.name.trim_end_matches(" back");
        let card = derive_seed(scenario.seed, "priority", name);
        groups
            .entry(flow.group_name().to_owned())
            .or_default()
            .push((card, index));
    }
    for (group, mut cards) in groups {
        cards.sort_unstable();
        for (priority, (_, index)) in (0..*number.get_ref()).cycle().zip(cards) {
            let flow = &mut scenario.flows[index];
            flow.priority = priority;
            flow.group = Some(format!("{group}, priority {priority}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[simulate]
duration = "1s"

[[simulate.link]]
a = "left"
b = "right"

[[simulate.flow]]
name = "call"
from = "left"
to = "right"
each = { i = 9 }
both = true
tcp = { rate = "60kbit" }

[[simulate.flow]]
name = "stream"
from = "left"
to = "right"
each = { i = 10 }
udp = { rate = "1mbit" }
"#;

    fn dealt(text: &str, seed: u64) -> Result<Scenario, FileError> {
        let document = Document::parse("test.toml", text)?;
        let mut scenario = Scenario::read(&document)?;
        scenario.seed = seed;
        let number = Spanned::new(0..0, 3);
        deal(&document, &number, &mut scenario).map(|()| scenario)
    }

    #[test]
    fn each_group_has_each_priority_equally_often_and_by_the_seed() {
        let orders: Vec<Vec<u8>> = (1..=4)
            .map(|seed| {
                let scenario = dealt(FILE, seed).unwrap();
                let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
                for flow in &scenario.flows {
                    *sizes.entry(flow.group_name()).or_default() += 1;
                    assert!(
                        flow.group_name()
                            .ends_with(&format!(", priority {}", flow.priority))
                    );
                }
                for (group, size) in [
                    ("call, priority 0", 3),
                    ("call, priority 2", 3),
                    ("call back, priority 1", 3),
                    ("stream, priority 0", 4),
                    ("stream, priority 2", 3),
                ] {
                    assert_eq!(sizes.get(group), Some(&size), "{group}");
                }
                let of = |name: &str| {
                    let mut flows = scenario.flows.iter();
                    flows.find(|flow| flow.name == name).expect("it exists").priority
                };
                assert_eq!(of("call-4"), of("call-4 back"));
                scenario.flows.iter().map(|flow| flow.priority).collect()
            })
            .collect();
        assert!(orders[1..].iter().any(|order| *order != orders[0]), "{orders:?}");
        let names: Vec<u8> = dealt(FILE, 1)
            .unwrap()
            .flows
            .iter()
            .map(|flow| flow.priority)
            .collect();
        assert_eq!(names, orders[0]);
    }

    #[test]
    fn flows_that_are_described_together_are_refused() {
        let together = FILE.replace("each = { i = 10 }", "count = 10");
        let error = dealt(&together, 1).unwrap_err().to_string();
        assert!(
            error.contains("all flows of `stream` would have one priority"),
            "{error}"
        );
    }
}
