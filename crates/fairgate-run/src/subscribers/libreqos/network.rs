//! `network.json`: the sites and access points of a network, nested, with their rates.
//!
//! A node is an object with `downloadBandwidthMbps`, `uploadBandwidthMbps` and perhaps `children`. A node
//! that is `virtual` is shown by LibreQoS and shapes nothing: what is below it is connected to the node above
//! it. The other members of a node (`type`, `id`, coordinates) are for LibreQoS' displays.

use std::collections::BTreeMap;

use crate::subscribers::fields::Raw;
use crate::subscribers::json::{self, Json, Member, Value};
use crate::subscribers::list::{DOWN, Node, UP};
use crate::subscribers::texts::{Mistake, Texts};

/// How many nodes may be above one another. HTB has eight levels; the line and the subscriber are two.
pub(crate) const DEPTH: usize = 6;

/// The members that are its rates, down and up, and the one with the nodes below it.
pub(crate) const RATES: [&str; 2] = ["downloadBandwidthMbps", "uploadBandwidthMbps"];
pub(crate) const CHILDREN: &str = "children";

/// The nodes of a network.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// The nodes that shape, each after the node above it.
    pub(crate) nodes: Vec<Node>,
    /// All names, each with the node that shapes what is connected there. `None`: the line.
    by_name: BTreeMap<String, Option<String>>,
}

impl Network {
    /// Returns the node that shapes what is connected to `name`, or nothing if there is no such node.
    pub(crate) fn shaper_at(&self, name: &str) -> Option<Option<&str>> {
        self.by_name.get(name).map(Option::as_deref)
    }

    /// Returns all names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Reads the nodes. Mistakes are reported.
pub(crate) fn read(text: usize, content: &str, texts: &mut Texts) -> Network {
    let mut reader = Reader {
        text,
        texts,
        network: Network::default(),
    };
    match json::parse(content) {
        Ok(json) => reader.children(json, None, 1),
        Err(mistake) => reader.texts.report(text, mistake),
    }
    reader.network
}

struct Reader<'a> {
    text: usize,
    texts: &'a mut Texts,
    network: Network,
}

impl Reader<'_> {
    fn wrong(&mut self, mistake: Mistake) {
        self.texts.report(self.text, mistake);
    }

    /// Reads the nodes below `above`, which are at this level, from 1.
    fn children(&mut self, json: Json<'_>, above: Option<&str>, level: usize) {
        let type_name = json.type_name();
        let Value::Object(members) = json.value else {
            self.wrong(Mistake::new(
                json.span,
                format!("the nodes are {type_name}"),
                "expected an object",
                "write {\"Site_1\": {\"downloadBandwidthMbps\": 1000, \"uploadBandwidthMbps\": 1000}}",
            ));
            return;
        };
        for member in members {
            self.node(member, above, level);
        }
    }

    fn node(&mut self, member: Member<'_>, above: Option<&str>, level: usize) {
        let name = Raw::new(member.name, member.span);
        let checked = match name.name("name") {
            Ok(checked) => checked,
            Err(mistake) => return self.wrong(mistake),
        };
        let type_name = member.value.type_name();
        let Value::Object(members) = member.value.value else {
            return self.wrong(Mistake::new(
                member.value.span,
                format!("the node `{}` is {type_name}", name.text),
                "expected an object",
                "write its downloadBandwidthMbps and uploadBandwidthMbps in braces",
            ));
        };
        let (mut rates, mut children, mut is_virtual) = ([None, None], None, false);
        for member in members {
            let side = match member.name.as_ref() {
                name if name == RATES[DOWN] => DOWN,
                name if name == RATES[UP] => UP,
                CHILDREN => {
                    children = Some(member.value);
                    continue;
                }
                "virtual" => {
                    is_virtual = member.value.value == Value::Flag(true);
                    continue;
                }
                _ => continue,
            };
            let span = member.value.span.clone();
            let raw = match member.value.value {
                Value::Number(number) => Raw::new(number, span),
                Value::Text(text) => Raw::new(text, span),
                _ => Raw::new("", span),
            };
            match raw.mbit(&member.name) {
                Ok(rate) => rates[side] = Some(rate),
                Err(mistake) => {
                    self.wrong(mistake);
                    // It is there, so it is not reported as missing.
                    rates[side] = Some(0);
                }
            }
        }
        if self.network.by_name.contains_key(&checked) {
            let help = "devices name their node, so each node needs a name of its own";
            let message = format!("there are two nodes `{checked}`");
            return self.wrong(name.wrong(message, "given before", help));
        }
        let shaper = match (is_virtual, rates) {
            (true, _) => above.map(str::to_owned),
            (false, [Some(down), Some(up)]) => {
                if level > DEPTH {
                    let message = format!("`{checked}` is the {level}th node on the way from the line");
                    let help = format!("at most {DEPTH} nodes may be above one another; join two of them");
                    return self.wrong(name.wrong(message, "too deep", help));
                }
                self.network.nodes.push(Node {
                    name: checked.clone(),
                    above: above.map(str::to_owned),
                    rates: [down, up],
                });
                Some(checked.clone())
            }
            (false, _) => {
                let message = format!("the node `{checked}` has no rate for each direction");
                let help = "write downloadBandwidthMbps and uploadBandwidthMbps";
                return self.wrong(name.wrong(message, "a rate is missing", help));
            }
        };
        self.network.by_name.insert(checked, shaper.clone());
        if let Some(children) = children {
            self.children(children, shaper.as_deref(), level + usize::from(!is_virtual));
        }
    }
}
