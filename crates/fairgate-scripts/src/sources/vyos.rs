//! VyOS: `set qos policy ...` and `set qos interface ...` (`set traffic-policy ...` before 1.4), and the same
//! as a file with braces.
//!
//! The policies are those that VyOS gives to tc: `shaper` is htb with a leaf for each class, `limiter`
//! polices what arrives.

use std::ops::Range;

use toml::Spanned;

use super::Writer;
use super::sections::lines;
use crate::script::Word;

/// A path of words with its place.
type Path = Vec<Word>;

pub(super) fn read(writer: &mut Writer<'_>) {
    let paths = paths(writer.text);
    let mut policies: Vec<Policy> = Vec::new();
    let mut uses: Vec<(Word, Word, Word)> = Vec::new();
    let mut without = Vec::new();
    for path in &paths {
        let words: Vec<&str> = path.iter().map(|word| word.get_ref().as_str()).collect();
        match words[..] {
            ["qos", "policy", _, _, ..] => add(&mut policies, &path[2..]),
            ["traffic-policy", _, _, ..] => add(&mut policies, &path[1..]),
            ["qos", "interface", _, "egress" | "ingress", _] => {
                uses.push((path[2].clone(), path[3].clone(), path[4].clone()));
            }
            ["interfaces", _, _, "traffic-policy", "in" | "out", _] => {
                let way = if words[4] == "in" { "ingress" } else { "egress" };
                uses.push((
                    path[2].clone(),
                    Spanned::new(path[4].span(), way.to_owned()),
                    path[5].clone(),
                ));
            }
            ["qos", "traffic-match-group", ..] => {
                writer.problem(
                    path[1].span(),
                    "groups of matches can't be carried over",
                    "write the matches in each class",
                );
            }
            [] => {}
            _ => without.push(path[0].span()),
        }
    }
    writer
        .notes
        .add_lines(&without, "these lines are not about queues");
    for (device, way, name) in &uses {
        match policies
            .iter_mut()
            .find(|policy| policy.name.get_ref() == name.get_ref())
        {
            Some(policy) => {
                policy.is_used = true;
                policy.attach(writer, device, way);
            }
            None => {
                let message = format!("there is no policy `{}`", name.get_ref());
                writer.problem(name.span(), &message, "add lines set qos policy ... for it");
            }
        }
    }
    for policy in policies.iter().filter(|policy| !policy.is_used) {
        if uses.is_empty()
            && let Some(device) = writer.device.map(str::to_owned)
        {
            let device = Spanned::new(policy.name.span(), device);
            let way = if policy.kind.get_ref() == "limiter" {
                "ingress"
            } else {
                "egress"
            };
            policy.attach(writer, &device, &Spanned::new(policy.name.span(), way.to_owned()));
            continue;
        }
        if uses.is_empty() {
            let help = "add a line set qos interface eth0 egress NAME, or name the interface: --device eth0";
            writer.problem(policy.name.span(), "no interface has this policy", help);
        } else {
            writer.note(
                &policy.name.span(),
                format!(
                    "no interface has the policy `{}`: it gives no tree",
                    policy.name.get_ref()
                ),
            );
        }
    }
}

/// Returns the paths of a file: of `set` lines, or of nested braces.
fn paths(text: &str) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut around: Vec<Path> = Vec::new();
    for (at, line) in lines(text, &['#', '/']) {
        let mut words = words(at, line);
        match (
            words.first().map(|word| word.get_ref().as_str()),
            words.last().map(|word| word.get_ref().as_str()),
        ) {
            (Some("set"), _) => {
                words.remove(0);
                paths.push(words);
            }
            (Some("}"), _) => drop(around.pop()),
            (_, Some("{")) => {
                words.pop();
                let mut path = around.last().cloned().unwrap_or_default();
                path.extend(words);
                around.push(path);
            }
            _ => {
                let mut path = around.last().cloned().unwrap_or_default();
                path.extend(words);
                paths.push(path);
            }
        }
    }
    paths
}

fn words(at: usize, line: &str) -> Path {
    let mut words = Vec::new();
    let mut from = 0;
    while let Some(skipped) = line[from..].find(|c: char| !c.is_whitespace()) {
        let start = from + skipped;
        let quote = line[start..]
            .chars()
            .next()
            .filter(|first| matches!(first, '\'' | '"'));
        let (text, end) = match quote {
            Some(quote) => {
                let length = line[start + 1..].find(quote).unwrap_or(line.len() - start - 1);
                (
                    &line[start + 1..start + 1 + length],
                    (start + length + 2).min(line.len()),
                )
            }
            None => {
                let length = line[start..]
                    .find(char::is_whitespace)
                    .unwrap_or(line.len() - start);
                (&line[start..start + length], start + length)
            }
        };
        words.push(Spanned::new(at + start..at + end, text.to_owned()));
        from = end;
    }
    words
}

/// A policy: the paths below its name.
struct Policy {
    kind: Word,
    name: Word,
    paths: Vec<Path>,
    is_used: bool,
}

fn add(policies: &mut Vec<Policy>, path: &[Word]) {
    let [kind, name, rest @ ..] = path else { return };
    let found = policies
        .iter_mut()
        .find(|policy| policy.name.get_ref() == name.get_ref());
    let policy = match found {
        Some(policy) => policy,
        None => {
            policies.push(Policy {
                kind: kind.clone(),
                name: name.clone(),
                paths: Vec::new(),
                is_used: false,
            });
            policies.last_mut().expect("one was added")
        }
    };
    if !rest.is_empty() {
        policy.paths.push(rest.to_vec());
    }
}

/// The settings below a path: of a class, or of the policy itself.
struct Node<'p>(Vec<&'p [Word]>);

impl<'p> Node<'p> {
    /// Returns the settings below these words.
    fn below(&self, words: &[&str]) -> Node<'p> {
        let is_below = |path: &&&'p [Word]| {
            path.len() >= words.len()
                && path
                    .iter()
                    .zip(words)
                    .all(|(word, other)| word.get_ref() == other)
        };
        Node(
            self.0
                .iter()
                .filter(is_below)
                .map(|path| &path[words.len()..])
                .filter(|path| !path.is_empty())
                .collect(),
        )
    }

    /// Returns the last value of a key.
    fn get(&self, key: &str) -> Option<&'p Word> {
        let mut found = self
            .0
            .iter()
            .rev()
            .filter(|path| path.len() == 2 && path[0].get_ref() == key);
        found.next().map(|path| &path[1])
    }

    fn text(&self, key: &str) -> Option<&'p str> {
        self.get(key).map(|word| word.get_ref().as_str())
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|path| path[0].get_ref() == key)
    }

    /// Returns the different words after a key.
    fn names(&self, key: &str) -> Vec<&'p Word> {
        let mut names: Vec<&'p Word> = Vec::new();
        for path in self
            .0
            .iter()
            .filter(|path| path.len() >= 2 && path[0].get_ref() == key)
        {
            if names.iter().all(|name| name.get_ref() != path[1].get_ref()) {
                names.push(&path[1]);
            }
        }
        names
    }

    /// Reports the settings that are not among these.
    fn only(&self, known: &[&str], writer: &mut Writer<'_>) {
        for path in &self.0 {
            let word = &path[0];
            if !known.contains(&word.get_ref().as_str()) {
                let message = format!("`{}` can't be carried over", word.get_ref());
                writer.problem(
                    word.span(),
                    &message,
                    format!("understood are {}", known.join(", ")),
                );
            }
        }
    }
}

impl Policy {
    fn node(&self) -> Node<'_> {
        Node(self.paths.iter().map(Vec::as_slice).collect())
    }

    fn attach(&self, writer: &mut Writer<'_>, device: &Word, way: &Word) {
        let node = self.node();
        let dev = device.get_ref().as_str();
        let at = self.name.span();
        let kind = self.kind.get_ref().as_str();
        let is_in = way.get_ref() == "ingress";
        if is_in != (kind == "limiter") {
            let help = match is_in {
                true => "VyOS takes only a limiter for what arrives",
                false => "VyOS takes a limiter only for what arrives",
            };
            return writer.problem(way.span(), "this policy is not for this direction", help);
        }
        let simple = |kind: &str, keys: &[(&str, &str)]| {
            let given = keys
                .iter()
                .filter_map(|(key, word)| Some(format!(" {word} {}", plain(node.text(key)?))));
            format!("{kind}{}", given.collect::<String>())
        };
        match kind {
            "fq-codel" => {
                node.only(
                    &[
                        "description",
                        "codel-quantum",
                        "flows",
                        "interval",
                        "queue-limit",
                        "target",
                    ],
                    writer,
                );
                let options = fq_codel(&node);
                writer.command(&at, format!("tc qdisc replace dev {dev} root {options}"));
            }
            "fair-queue" => {
                node.only(&["description", "hash-interval", "queue-limit"], writer);
                let options = simple("sfq", &[("hash-interval", "perturb"), ("queue-limit", "limit")]);
                writer.command(&at, format!("tc qdisc replace dev {dev} root {options}"));
            }
            "drop-tail" => {
                node.only(&["description", "queue-limit"], writer);
                let options = simple("pfifo", &[("queue-limit", "limit")]);
                writer.command(&at, format!("tc qdisc replace dev {dev} root {options}"));
            }
            "rate-control" => {
                node.only(&["description", "bandwidth", "burst", "latency"], writer);
                let Some(rate) = rate(node.get("bandwidth"), None, &at, writer) else {
                    return;
                };
                let burst = node.text("burst").map_or("15k".to_owned(), plain);
                let latency = node.text("latency").map_or("50ms".to_owned(), millis);
                writer.command(
                    &at,
                    format!(
                        "tc qdisc replace dev {dev} root tbf rate {rate}bit burst {burst} latency {latency}"
                    ),
                );
            }
            "cake" => cake(writer, &node, dev, &at),
            "network-emulator" => emulator(writer, &node, dev, &at),
            "limiter" => limiter(writer, &node, dev, &at),
            "shaper" | "priority-queue" | "round-robin" => self.classes(writer, dev),
            other => {
                let message = format!("a policy `{other}` can't be carried over");
                let help = "understood are shaper, limiter, cake, fq-codel, fair-queue, drop-tail, \
                    rate-control, \
                    priority-queue, round-robin, network-emulator";
                writer.problem(self.kind.span(), &message, help);
            }
        }
    }

    /// `shaper`, `priority-queue` and `round-robin`: a qdisc with classes.
    fn classes(&self, writer: &mut Writer<'_>, dev: &str) {
        let node = self.node();
        let at = self.name.span();
        let kind = self.kind.get_ref().as_str();
        node.only(&["description", "bandwidth", "class", "default"], writer);
        let ids: Vec<(&Word, u32)> = node
            .names("class")
            .into_iter()
            .filter_map(|id| Some((id, id.get_ref().parse().ok()?)))
            .collect();
        let last = ids.iter().map(|(_, id)| *id).max().unwrap_or(1) + 1;
        // Bands of prio are counted from 1, those of VyOS too.
        let number = |id: u32| format!("{id:x}");
        let whole = match kind {
            "shaper" => match rate(node.get("bandwidth"), None, &at, writer) {
                Some(rate) => rate,
                None => return,
            },
            _ => 0,
        };
        match kind {
            "shaper" => {
                writer.command(
                    &at,
                    format!(
                        "tc qdisc replace dev {dev} root handle 1: htb r2q {} default {}",
                        (whole / 8 / 1514 / 100).clamp(10, 4000),
                        number(last)
                    ),
                );
                writer.command(
                    &at,
                    format!("tc class replace dev {dev} parent 1: classid 1:1 htb rate {whole}bit"),
                );
            }
            "priority-queue" => {
                // Class 1 to 7, and the default last.
                let map = vec![(last - 1).to_string(); 16].join(" ");
                writer.command(
                    &at,
                    format!("tc qdisc replace dev {dev} root handle 1: prio bands {last} priomap {map}"),
                );
            }
            _ => writer.command(&at, format!("tc qdisc replace dev {dev} root handle 1: drr")),
        }
        let mut preference = 1;
        let classes = ids
            .iter()
            .map(|(word, id)| (Some(*word), *id))
            .chain([(None, last)]);
        for (word, id) in classes {
            let class = match word {
                Some(word) => node.below(&["class", word.get_ref()]),
                None => node.below(&["default"]),
            };
            let at = word.map_or(at.clone(), Spanned::span);
            let known = [
                "bandwidth",
                "burst",
                "ceiling",
                "priority",
                "queue-type",
                "queue-limit",
                "codel-quantum",
                "flows",
                "interval",
                "target",
                "match",
                "quantum",
                "description",
                "set-dscp",
                "mtu",
            ];
            class.only(&known, writer);
            let minor = number(id);
            match kind {
                "shaper" => {
                    let given = class.get("bandwidth");
                    let own = match given {
                        Some(_) => rate(given, Some(whole), &at, writer),
                        None => Some(whole),
                    };
                    let Some(own) = own else { return };
                    let ceil = class
                        .get("ceiling")
                        .and_then(|ceiling| rate(Some(ceiling), Some(whole), &at, writer))
                        .unwrap_or(own);
                    let burst = class.text("burst").map_or("15k".to_owned(), plain);
                    let prio = class
                        .text("priority")
                        .map_or(String::new(), |prio| format!(" prio {prio}"));
                    writer.command(
                        &at,
                        format!(
                            "tc class replace dev {dev} parent 1:1 classid \
                        1:{minor} htb rate {own}bit ceil {ceil}bit burst {burst} quantum 1514{prio}"
                        ),
                    );
                }
                "round-robin" => {
                    let quantum = class
                        .text("quantum")
                        .map_or(String::new(), |quantum| format!(" quantum {quantum}"));
                    writer.command(
                        &at,
                        format!("tc class replace dev {dev} parent 1: classid 1:{minor} drr{quantum}"),
                    );
                }
                _ => {}
            }
            let leaf = leaf(writer, &class, &at);
            writer.command(&at, format!("tc qdisc replace dev {dev} parent 1:{minor} {leaf}"));
            if let Some(word) = class.get("set-dscp") {
                writer.problem(
                    word.span(),
                    "a DSCP that a class sets can't be carried over",
                    "let a filter set it in TOML: set_dscp",
                );
            }
            for name in class.names("match") {
                let conditions = class.below(&["match", name.get_ref()]);
                for line in matches(writer, &conditions, &name.span()) {
                    writer.command(
                        &name.span(),
                        format!(
                            "tc filter add dev {dev} parent 1: prio {preference} {line} classid 1:{minor}"
                        ),
                    );
                    preference += 1;
                }
            }
        }
        if kind == "round-robin" {
            writer.command(
                &at,
                format!(
                    "tc filter add dev {dev} parent 1: prio {preference} protocol all matchall classid 1:{}",
                    number(last)
                ),
            );
        }
    }
}

/// Returns the qdisc of a class.
fn leaf(writer: &mut Writer<'_>, class: &Node<'_>, at: &Range<usize>) -> String {
    let limit = class
        .text("queue-limit")
        .map_or(String::new(), |limit| format!(" limit {}", plain(limit)));
    match class.text("queue-type").unwrap_or("fair-queue") {
        "fq-codel" => fq_codel(class),
        "fair-queue" => format!("sfq perturb 10{limit}"),
        "drop-tail" => format!("pfifo{limit}"),
        "priority" => "prio".to_owned(),
        other => {
            let message = format!("the queue-type `{other}` can't be carried over");
            writer.problem(
                class.get("queue-type").map_or(at.clone(), Spanned::span),
                &message,
                "write fq-codel, fair-queue or drop-tail",
            );
            "pfifo".to_owned()
        }
    }
}

fn fq_codel(node: &Node<'_>) -> String {
    let mut words = "fq_codel".to_owned();
    for (key, word) in [
        ("queue-limit", "limit"),
        ("flows", "flows"),
        ("codel-quantum", "quantum"),
    ] {
        if let Some(value) = node.text(key) {
            words += &format!(" {word} {}", plain(value));
        }
    }
    for key in ["target", "interval"] {
        if let Some(value) = node.text(key) {
            words += &format!(" {key} {}", millis(value));
        }
    }
    words
}

fn cake(writer: &mut Writer<'_>, node: &Node<'_>, dev: &str, at: &Range<usize>) {
    node.only(
        &[
            "description",
            "bandwidth",
            "flow-isolation",
            "flow-isolation-nat",
            "rtt",
            "no-split-gso",
            "ack-filter",
        ],
        writer,
    );
    let mut words = match node.get("bandwidth") {
        Some(bandwidth) => match rate(Some(bandwidth), None, at, writer) {
            Some(rate) => format!("bandwidth {rate}bit"),
            None => return,
        },
        None => "unlimited".to_owned(),
    };
    let mut isolation = node.0.iter().filter(|path| path[0].get_ref() == "flow-isolation");
    if let Some(path) = isolation.next()
        && let Some(mode) = path.get(1)
    {
        let word = match mode.get_ref().as_str() {
            "blind" => "flowblind",
            "src-host" => "srchost",
            "dst-host" => "dsthost",
            "dual-src-host" => "dual-srchost",
            "dual-dst-host" => "dual-dsthost",
            "host" => "hosts",
            "flow" => "flows",
            "triple-isolate" => "triple-isolate",
            _ => {
                return writer.problem(
                    mode.span(),
                    "this isolation is not known",
                    "write host, flow, triple-isolate ...",
                );
            }
        };
        words += &format!(" {word}");
    }
    if node.has("flow-isolation-nat") {
        words += " nat";
    }
    if let Some(rtt) = node.text("rtt") {
        words += &format!(" rtt {}", millis(rtt));
    }
    writer.command(at, format!("tc qdisc replace dev {dev} root cake {words}"));
}

fn emulator(writer: &mut Writer<'_>, node: &Node<'_>, dev: &str, at: &Range<usize>) {
    let keys = [
        "description",
        "bandwidth",
        "rate",
        "network-delay",
        "delay",
        "packet-loss",
        "loss",
        "packet-corruption",
        "corruption",
        "packet-reordering",
        "reordering",
        "duplicate",
        "queue-limit",
        "burst",
    ];
    node.only(&keys, writer);
    let mut words = String::new();
    let percent = |text: &str| format!("{}%", text.trim_end_matches('%'));
    for (keys, word) in [
        (["network-delay", "delay"], "delay"),
        (["packet-loss", "loss"], "loss"),
        (["packet-corruption", "corruption"], "corrupt"),
        (["packet-reordering", "reordering"], "reorder"),
        (["duplicate", "duplicate"], "duplicate"),
    ] {
        if let Some(value) = keys.into_iter().find_map(|key| node.text(key)) {
            let value = if word == "delay" {
                millis(value)
            } else {
                percent(value)
            };
            words += &format!(" {word} {value}");
        }
    }
    if let Some(limit) = node.text("queue-limit") {
        words += &format!(" limit {limit}");
    }
    let given = node.get("bandwidth").or(node.get("rate"));
    if given.is_some() {
        let Some(rate) = rate(given, None, at, writer) else {
            return;
        };
        words += &format!(" rate {rate}bit");
    }
    writer.command(at, format!("tc qdisc replace dev {dev} root netem{words}"));
}

/// `limiter`: policers of what arrives, one for each class and one for the rest.
fn limiter(writer: &mut Writer<'_>, node: &Node<'_>, dev: &str, at: &Range<usize>) {
    node.only(&["description", "class", "default"], writer);
    writer.command(at, format!("tc qdisc add dev {dev} handle ffff: ingress"));
    let mut preference = 1;
    let mut ids = node.names("class");
    ids.sort_by_key(|id| id.get_ref().parse::<u32>().unwrap_or(0));
    for id in ids.into_iter().map(Some).chain([None]) {
        let class = match id {
            Some(id) => node.below(&["class", id.get_ref()]),
            None => node.below(&["default"]),
        };
        let at = id.map_or(at.clone(), Spanned::span);
        if id.is_none() && class.0.is_empty() {
            continue;
        }
        class.only(
            &[
                "bandwidth",
                "burst",
                "match",
                "priority",
                "description",
                "exceed",
                "not-exceed",
            ],
            writer,
        );
        let Some(rate) = rate(class.get("bandwidth"), None, &at, writer) else {
            return;
        };
        let burst = class.text("burst").map_or("15k".to_owned(), plain);
        let exceed = match class.text("exceed") {
            None | Some("drop") => "drop",
            Some("ok" | "pass") => "pass",
            Some(_) => "continue",
        };
        let police = format!("action police rate {rate}bit burst {burst} conform-exceed {exceed}");
        match id {
            None => {
                writer.command(
                    &at,
                    format!("tc filter add dev {dev} parent ffff: prio 255 protocol all matchall {police}"),
                );
            }
            Some(_) => {
                for name in class.names("match") {
                    let conditions = class.below(&["match", name.get_ref()]);
                    for line in matches(writer, &conditions, &name.span()) {
                        writer.command(
                            &name.span(),
                            format!("tc filter add dev {dev} parent ffff: prio {preference} {line} {police}"),
                        );
                        preference += 1;
                    }
                }
            }
        }
    }
}

/// Returns the filters of a match, without their class.
fn matches(writer: &mut Writer<'_>, node: &Node<'_>, at: &Range<usize>) -> Vec<String> {
    node.only(
        &["description", "ip", "ipv6", "mark", "vif", "interface", "ether"],
        writer,
    );
    let mut filters = Vec::new();
    for (family, protocol) in [("ip", "ip"), ("ipv6", "ipv6")] {
        let conditions = node.below(&[family]);
        if conditions.0.is_empty() {
            continue;
        }
        conditions.only(
            &["dscp", "source", "destination", "protocol", "max-length", "tcp"],
            writer,
        );
        let mut words = String::new();
        if let Some(dscp) = conditions.get("dscp") {
            match dscp_of(dscp.get_ref()) {
                Some(value) => words += &format!(" ip_tos {:#x}/0xfc", value << 2),
                None => writer.problem(
                    dscp.span(),
                    "this is no DSCP",
                    "write 0 to 63, or a name like AF41, CS1, EF",
                ),
            }
        }
        let ends =
            [("source", "src"), ("destination", "dst")].map(|(end, word)| (conditions.below(&[end]), word));
        if let Some(protocol) = conditions.text("protocol") {
            words += &format!(" ip_proto {protocol}");
        } else if ends.iter().any(|(end, _)| end.has("port")) {
            let text = "a match on a port names no protocol: it is for TCP and UDP, here for TCP only; write \
                protocol udp in another match";
            writer.note(at, text);
            words += " ip_proto tcp";
        }
        for (end, word) in &ends {
            end.only(&["address", "port"], writer);
            if let Some(address) = end.text("address") {
                words += &format!(" {word}_ip {address}");
            }
            if let Some(port) = end.text("port") {
                words += &format!(" {word}_port {port}");
            }
        }
        for key in ["max-length", "tcp"] {
            if conditions.has(key) {
                writer.problem(
                    at.clone(),
                    &format!("a match on `{key}` can't be carried over"),
                    "leave it out",
                );
            }
        }
        filters.push(format!("protocol {protocol} flower{words}"));
    }
    if let Some(mark) = node.text("mark") {
        filters.push(format!("protocol all handle {mark} fw"));
    }
    if let Some(vif) = node.text("vif") {
        filters.push(format!("protocol all basic match meta(vlan mask 0xfff eq {vif})"));
    }
    for key in ["interface", "ether"] {
        if node.has(key) {
            writer.problem(
                at.clone(),
                &format!("a match on `{key}` can't be carried over"),
                "leave it out",
            );
        }
    }
    filters
}

fn dscp_of(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    if let Ok(number) = lower.parse::<u32>() {
        return (number < 64).then_some(number);
    }
    let number = |digits: &str| digits.parse::<u32>().ok();
    match lower.as_str() {
        "default" | "be" => Some(0),
        "ef" | "expedited" => Some(46),
        "va" => Some(44),
        "lowdelay" => Some(4),
        "throughput" => Some(2),
        "reliability" => Some(1),
        "priority" => Some(8),
        _ => match (lower.strip_prefix("cs"), lower.strip_prefix("af")) {
            (Some(class), _) => number(class).filter(|class| *class < 8).map(|class| class * 8),
            (_, Some(class)) => number(class)
                .filter(|class| matches!(class % 10, 1..=3) && matches!(class / 10, 1..=4))
                .map(|class| class / 10 * 8 + class % 10 * 2),
            _ => None,
        },
    }
}

/// Returns a rate in bit/s. A part of 100 is one of `whole`.
fn rate(given: Option<&Word>, whole: Option<u64>, at: &Range<usize>, writer: &mut Writer<'_>) -> Option<u64> {
    let Some(word) = given else {
        writer.problem(
            at.clone(),
            "the bandwidth is missing",
            "write bandwidth and a rate like 100mbit",
        );
        return None;
    };
    let text = word.get_ref().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: f64 = digits.parse().unwrap_or(-1.0);
    let factor = match unit {
        "%" => whole.map(|whole| whole as f64 / 100.0),
        // VyOS takes kbit for a number without a unit.
        "" | "kbit" | "k" => Some(1e3),
        "bit" => Some(1.0),
        "mbit" | "m" => Some(1e6),
        "gbit" | "g" => Some(1e9),
        "tbit" => Some(1e12),
        "kibit" => Some(1024.0),
        "mibit" => Some(1_048_576.0),
        "kbps" => Some(8e3),
        "mbps" => Some(8e6),
        "gbps" => Some(8e9),
        "bps" => Some(8.0),
        _ => None,
    };
    match factor.filter(|_| number > 0.0) {
        Some(factor) => Some((number * factor).round() as u64),
        None => {
            let message = format!("`{}` is no rate here", word.get_ref());
            writer.problem(
                word.span(),
                &message,
                "write a rate like 100mbit; only classes have a part like 20%",
            );
            None
        }
    }
}

/// A size with tc's units.
fn plain(text: &str) -> String {
    text.to_ascii_lowercase()
        .trim_end_matches("bytes")
        .trim()
        .to_owned()
}

/// A time in milliseconds, unless it has a unit.
fn millis(text: &str) -> String {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{text}ms"),
        false => text.to_owned(),
    }
}
