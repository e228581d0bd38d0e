//! Reads actions: what else happens to packets that match.
//!
//! In the kernel a filter's actions are done one after the other, until one of them says that the packet
//! passes, is dropped, or goes on to the next filter (`tcf_action_exec`). Here a filter polices first, then
//! changes fields, and then has one outcome. So a list of actions becomes one or more filters with the same
//! conditions, of which all but the last continue.

use std::ops::Range;

use fairgate_config::language::{Given, Written};
use toml::Spanned;

use super::Reader;
use crate::script::{Word, number, setting};
use crate::tc::abbreviations::full;
use crate::tc::values::without_exponent;

/// What an action says about the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlAction {
    /// The next action is done (`pipe`).
    Action,
    /// The packet passes: to the filter's class (`pass`, `ok`).
    Pass,
    /// It is dropped (`drop`, `shot`).
    Drop,
    /// The next filters are tried (`continue`).
    Filter,
    /// All filters are tried again (`reclassify`).
    Again,
    /// The filters of another chain are tried (`goto chain 5`).
    Chain(u32),
}

/// Where packets go after all actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// To the filter's class.
    #[default]
    Class,
    /// Nowhere.
    Drop,
    /// To the next filters.
    Filter,
    /// To the filters of this chain.
    Chain(u32),
}

/// The settings of one filter of ours: a policer, changes.
#[derive(Clone, Default)]
struct Stage {
    police: Option<Written>,
    /// Whether packets that exceed go elsewhere than the packets that are dropped.
    may_go_on: bool,
    changes: Vec<Written>,
}

/// The actions of a filter.
#[derive(Clone, Default)]
pub(super) struct Actions {
    stages: Vec<Stage>,
    end: End,
    /// The action after which no other is done.
    ended: Option<Range<usize>>,
    /// Whether there is any action.
    pub(super) are_any: bool,
    /// Whether a policer asks for the average rate.
    average: bool,
}

impl Actions {
    /// Whether a policer asks for the average rate.
    pub(super) fn average(&self) -> bool {
        self.average
    }

    /// Where packets go after all actions.
    pub(super) fn end(&self) -> End {
        self.end
    }

    /// Whether the filter does nothing but choose a class.
    pub(super) fn are_none(&self) -> bool {
        self.end == End::Class && self.stages.iter().all(|stage| stage.is_empty())
    }

    /// Whether there is a policer.
    pub(super) fn police(&self) -> bool {
        self.stages.iter().any(|stage| stage.police.is_some())
    }

    /// Whether packets that match never get to the next filters.
    pub(super) fn are_final(&self) -> bool {
        self.end != End::Filter && !self.stages.iter().any(|stage| stage.may_go_on)
    }

    /// Returns the settings of each filter of ours. Those of all but the last one continue.
    pub(super) fn filters(&self) -> Vec<Vec<Written>> {
        let settings = |stage: &Stage| stage.police.iter().chain(&stage.changes).cloned().collect();
        let stages: Vec<Vec<Written>> = self.stages.iter().map(settings).collect();
        match stages.is_empty() {
            true => vec![Vec::new()],
            false => stages,
        }
    }

    fn stage(&mut self) -> &mut Stage {
        if self.stages.is_empty() {
            self.stages.push(Stage::default());
        }
        self.stages.last_mut().expect("there is one")
    }
}

impl Stage {
    fn is_empty(&self) -> bool {
        self.police.is_none() && self.changes.is_empty()
    }
}

const KINDS: &str = "understood are drop, pass, continue, reclassify, pipe, police, skbedit, pedit of \
    dsfield, connmark, ctinfo, csum and mirred";

impl<'f> Reader<'f, '_> {
    /// Reads what follows `action`: a kind with its options, or what happens to the packet.
    pub(super) fn action(&mut self, word: &'f Word) {
        if let Some(kind) = self.value(word) {
            self.action_of_kind(kind);
        }
    }

    /// Reads a kind of action with its options.
    pub(super) fn action_of_kind(&mut self, kind: &'f Word) {
        if let Some(earlier) = &self.actions.ended {
            let message = "this action is never done: one before it decides what happens to the packet";
            let help = "leave it out, or write pipe at the end of the action before it";
            let _ = earlier;
            self.problems.add(kind.span(), message, "never done", help);
            self.words = [].iter();
            return;
        }
        self.actions.are_any = true;
        match kind.get_ref().as_str() {
            "gact" => {
                if let Some(control) = self.value(kind) {
                    self.gact(control);
                }
            }
            "police" => self.police(kind),
            "mirred" => self.mirred(kind),
            "skbedit" => self.skbedit(kind),
            "pedit" => self.pedit(kind),
            "connmark" => {
                self.skip(&["zone"]);
                let text = "connmark reads the mark of the connection, which only the machine's own \
                    connection tracking knows: the packet keeps its mark";
                self.notes.add(kind.span(), text.to_owned());
                self.control(kind, ControlAction::Action);
            }
            "ctinfo" => self.ctinfo(kind),
            "csum" => {
                let is_header = |word: &&Word| {
                    matches!(
                        word.get_ref().as_str(),
                        "ip" | "ip4h"
                            | "icmp"
                            | "igmp"
                            | "tcp"
                            | "udp"
                            | "udplite"
                            | "sctp"
                            | "and"
                            | "+"
                            | "index"
                    )
                };
                while self.words.as_slice().first().is_some_and(|word| is_header(&word)) {
                    self.words.next();
                }
                self.control(kind, ControlAction::Pass);
            }
            _ if is_control(kind) => self.gact(kind),
            name => {
                let why = match name {
                    "nat" => "it rewrites addresses, and a tree only schedules",
                    "vlan" | "mpls" | "tunnel_key" | "ife" | "skbmod" => {
                        "it rewrites the frame, and a tree only schedules"
                    }
                    "ct" => "it needs the machine's own connection tracking",
                    "bpf" => "it runs a program in the kernel",
                    "sample" => "it sends copies to a program; capture at the interface instead",
                    "gate" => "it opens by a clock of the network",
                    _ => "it is unknown here",
                };
                let message = format!("the action `{name}` can't be carried over: {why}");
                self.problems.add(kind.span(), message, "not here", KINDS);
                self.words = [].iter();
            }
        }
    }

    /// Skips the options of `ctinfo`. `dscp` has a mask, and one for the bits that say whether there is a
    /// DSCP.
    fn ctinfo(&mut self, ctinfo: &'f Word) {
        const FORM: &str = "write ctinfo dscp MASK STATEMASK, or ctinfo cpmark MASK";
        while let [option, ..] = self.words.as_slice()
            && let Some(key) = full(option.get_ref(), &["dscp", "cpmark", "zone", "index"])
        {
            self.words.next();
            let is_number = |word: &&Word| number(word.get_ref()).is_some();
            let given = self.words.as_slice().iter().take(2).take_while(is_number).count();
            let given = if key == "dscp" { given } else { given.min(1) };
            if key == "dscp" && given > 0 {
                let masks: Vec<u32> = self.words.as_slice()[..given]
                    .iter()
                    .filter_map(|word| number(word.get_ref()))
                    .collect();
                // `parse_ctinfo` in m_ctinfo.c: six bits in a row, and others for the state.
                let bits = masks[0] >> masks[0].trailing_zeros().min(31);
                if bits != 0x3f || masks.get(1).is_some_and(|state| state & masks[0] != 0) {
                    let word = &self.words.as_slice()[0];
                    let message = "the mask of a DSCP is six bits in a row, apart from those of the state";
                    return self.problem(word, message, FORM);
                }
            }
            self.words.by_ref().take(given).for_each(drop);
        }
        let text = "ctinfo reads the mark of the connection, which only the machine's own connection \
            tracking knows: the packet keeps its DSCP and its mark";
        self.notes.add(ctinfo.span(), text.to_owned());
        self.control(ctinfo, ControlAction::Action);
    }

    /// Skips options with a value.
    fn skip(&mut self, options: &[&str]) {
        while let [option, ..] = self.words.as_slice()
            && (options.contains(&option.get_ref().as_str()) || option.get_ref() == "index")
        {
            self.words.next();
            // The value, which some options may lack.
            if let [value, ..] = self.words.as_slice()
                && value.get_ref().starts_with(|first: char| first.is_ascii_digit())
            {
                self.words.next();
            }
        }
    }

    fn gact(&mut self, word: &'f Word) {
        if !is_control(word) {
            return self.problem(word, "this is not what can happen to a packet", KINDS);
        }
        let Some(control) = self.next(word) else { return };
        self.skip(&[]);
        if let [random, ..] = self.words.as_slice()
            && random.get_ref() == "random"
        {
            let help = "leave it out; a simulated link loses packets at random with `loss`";
            return self.problem(random, "random actions can't be carried over", help);
        }
        self.decide(word, control);
    }

    /// Reads what happens to the packet after an action, if it is written.
    fn control(&mut self, action: &'f Word, default: ControlAction) {
        match self.words.as_slice() {
            [word, ..] if is_control(word) => {
                self.words.next();
                if let Some(control) = self.next(word) {
                    self.decide(word, control);
                }
            }
            _ => self.decide(action, default),
        }
        self.skip(&[]);
    }

    /// Returns what `word` says about the rest. A chain is named by the words after it.
    fn next(&mut self, word: &'f Word) -> Option<ControlAction> {
        if word.get_ref() != "goto" {
            return next_of(word.get_ref());
        }
        let chain = match self.words.as_slice() {
            [chain, value, ..] if chain.get_ref() == "chain" => {
                number(value.get_ref()).filter(|number| *number < 1 << 28)
            }
            _ => None,
        };
        match chain {
            Some(chain) => {
                self.words.nth(1);
                Some(ControlAction::Chain(chain))
            }
            None => {
                self.problem(
                    word,
                    "`goto` names no chain",
                    "write goto chain and a number below 2^28",
                );
                None
            }
        }
    }

    fn decide(&mut self, word: &Word, control: ControlAction) {
        let actions = &mut self.actions;
        match control {
            ControlAction::Action => return,
            ControlAction::Pass => actions.end = End::Class,
            ControlAction::Drop => actions.end = End::Drop,
            ControlAction::Filter => actions.end = End::Filter,
            ControlAction::Chain(chain) => actions.end = End::Chain(chain),
            ControlAction::Again => {
                // The kernel tries 16 times, and then drops the packet.
                if actions.stage().police.is_some() || !actions.stage().changes.is_empty() {
                    actions.stages.push(Stage::default());
                }
                let entries = vec![entry(word, "conform", Given::Text("reclassify".to_owned()))];
                actions.stage().police = Some(setting(&word.span(), "police", Given::Table(entries)));
                actions.end = End::Drop;
            }
        }
        actions.ended = Some(word.span());
    }

    /// Reads a policer. It can also stand without the word `action` before it.
    pub(super) fn police(&mut self, police: &'f Word) {
        const FORM: &str = "write police rate 1mbit burst 10k conform-exceed drop";
        self.actions.are_any = true;
        let mut entries: Vec<(Spanned<String>, Spanned<Given>)> = Vec::new();
        let (mut exceed, mut conform) = (ControlAction::Again, ControlAction::Pass);
        let mut has_peak = None;
        let mut mtu: Option<&Word> = None;
        let mut is_known = false;
        while let [word, ..] = self.words.as_slice() {
            const WORDS: [&str; 8] = [
                "index",
                "burst",
                "avrate",
                "peakrate",
                "overhead",
                "linklayer",
                "conform-exceed",
                "mpu",
            ];
            let key = match full(word.get_ref(), &WORDS).unwrap_or(word.get_ref()) {
                "rate" => "rate",
                "burst" | "buffer" | "maxburst" => "burst",
                "peakrate" => "peakrate",
                "mtu" | "minburst" => "mtu",
                "mpu" => "mpu",
                "overhead" => "overhead",
                "linklayer" => "cells",
                "pkts_rate" => "packets",
                "pkts_burst" => "burst_packets",
                "index" => "index",
                "avrate" => {
                    // The kernel refuses it, too (`tcf_police_init`).
                    let Some(estimator) = self.estimator else {
                        let help = "write estimator 250ms 1s before the kind of the filter";
                        return self.problem(word, "`avrate` needs an estimator", help);
                    };
                    self.actions.average = true;
                    entries.push(estimator.setting());
                    "average"
                }
                "conform-exceed" => {
                    self.words.next();
                    let Some(value) = self.value(word) else { return };
                    let (first, second) = match value.get_ref().split_once('/') {
                        Some((first, second)) => (first, Some(second)),
                        None => (value.get_ref().as_str(), None),
                    };
                    if first == "goto" || second == Some("goto") {
                        let help = "write continue, and goto chain in a filter after this one";
                        return self.problem(value, "a policer can't lead to another chain here", help);
                    }
                    let second = second.map_or(Some(conform), next_of);
                    let Some((first, second)) = next_of(first).zip(second) else {
                        return self.problem(value, "this is not what can happen to a packet", FORM);
                    };
                    (exceed, conform) = (first, second);
                    break;
                }
                _ => {
                    // What happens to packets that exceed.
                    if let Some(control) = next_of(word.get_ref()) {
                        self.words.next();
                        exceed = control;
                    }
                    break;
                }
            };
            self.words.next();
            let Some(value) = self.value(word) else { return };
            let text = without_exponent(value.get_ref());
            let given = match key {
                "index" => continue,
                "mtu" => {
                    mtu = Some(value);
                    continue;
                }
                "peakrate" => {
                    has_peak = Some(word);
                    Given::Word(text)
                }
                "burst" => Given::Word(text.split('/').next().unwrap_or_default().to_owned()),
                "cells" => match text.as_str() {
                    "ethernet" => continue,
                    "atm" | "adsl" => Given::Meant("atm".to_owned()),
                    _ => Given::Word(text),
                },
                _ => match number(&text) {
                    Some(number) => Given::Integer(number.into()),
                    None => Given::Word(text),
                },
            };
            is_known = true;
            entries.push(entry_at(word, value, key, given));
        }
        if let Some(value) = mtu {
            let bytes = value.get_ref().split('/').next().unwrap_or_default().to_owned();
            is_known = true;
            entries.push(entry_at(value, value, "longest", Given::Word(bytes.clone())));
            if has_peak.is_some() {
                entries.push(entry_at(value, value, "mtu", Given::Word(bytes)));
            }
        }
        if !is_known {
            let help = "write the rate and the burst: a policer that another line made is not shared here";
            return self.problem(police, "`police` has no rate", help);
        }
        for (key, control, default) in [("conform", conform, "pass"), ("exceed", exceed, "drop")] {
            let word = match control {
                ControlAction::Action | ControlAction::Pass => "pass",
                ControlAction::Drop => "drop",
                ControlAction::Filter => "continue",
                ControlAction::Again => "reclassify",
                ControlAction::Chain(_) => unreachable!("a policer leads to no chain"),
            };
            if word != default {
                entries.push(entry(police, key, Given::Text(word.to_owned())));
            }
        }
        let actions = &mut self.actions;
        if !actions.stage().is_empty() {
            if actions.stage().may_go_on {
                let help = "write two filters, the first one with continue";
                return self.problem(police, "only the last policer of a filter can continue", help);
            }
            actions.stages.push(Stage::default());
        }
        let stage = actions.stage();
        stage.may_go_on = [conform, exceed].contains(&ControlAction::Filter);
        stage.police = Some(setting(&police.span(), "police", Given::Table(entries)));
        if conform != ControlAction::Action {
            // With `pass` no other action is done.
            actions.ended = Some(police.span());
        }
    }

    fn skbedit(&mut self, skbedit: &'f Word) {
        while let [word, ..] = self.words.as_slice() {
            let key = word.get_ref().as_str();
            match key {
                "mark" | "priority" => {
                    self.words.next();
                    let Some(value) = self.value(word) else { return };
                    self.set(key, value);
                }
                "queue_mapping" => {
                    self.words.next();
                    let _ = self.value(word);
                    let text = "skbedit queue_mapping has no effect: each direction has one queue";
                    self.notes.add(word.span(), text.to_owned());
                }
                "inheritdsfield" | "ptype" => {
                    let help = "set a priority or a mark";
                    return self.problem(word, "this of `skbedit` can't be carried over", help);
                }
                _ => break,
            }
        }
        self.control(skbedit, ControlAction::Action);
    }

    /// Adds a change of a field after the policer, in a filter of its own if a policer comes later.
    fn change(&mut self, change: Written) {
        self.actions.stage().changes.push(change);
    }

    fn set(&mut self, key: &str, value: &Word) {
        let text = value.get_ref();
        let given = match key {
            "mark" => {
                let (bits, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
                number(bits)
                    .zip(number(mask))
                    .map(|(bits, mask)| Given::Text(format!("{:#x}/{mask:#x}", bits & mask)))
            }
            // Like a class; a number without a colon is hexadecimal (`get_tc_classid`).
            _ => match text.split_once(':') {
                Some((major, _)) if major.is_empty() || major == "0" => None,
                Some(_) => Some(Given::Text(text.clone())),
                None => u32::from_str_radix(text.trim_start_matches("0x"), 16)
                    .ok()
                    .filter(|priority| *priority < 1 << 16)
                    .map(|priority| Given::Integer((priority & 15).into())),
            },
        };
        match given {
            Some(given) => self.change(setting(&value.span(), &format!("set_{key}"), given)),
            None => {
                let help = "write skbedit priority 1:10, priority 6 or mark 0x10/0xf0";
                self.problem(value, "`skbedit` can't set this here", help);
            }
        }
    }

    /// Reads `munge ip dsfield set X`, perhaps with `retain M`: the only change of a packet's bytes that a
    /// tree makes.
    fn pedit(&mut self, pedit: &'f Word) {
        const HELP: &str = "understood is pedit ex munge ip dsfield set 0xb8 retain 0xfc";
        let expected = |reader: &mut Reader<'f, '_>, words: &[&str]| match reader.words.as_slice() {
            [word, ..] if words.contains(&word.get_ref().as_str()) => reader.words.next(),
            _ => None,
        };
        expected(self, &["ex"]);
        let is_known = expected(self, &["munge"]).is_some()
            && expected(self, &["ip", "ip6"]).is_some()
            && expected(self, &["dsfield", "tos", "traffic_class"]).is_some()
            && expected(self, &["set"]).is_some();
        if !is_known {
            return self.problem(
                pedit,
                "this of `pedit` can't be carried over: it rewrites the packet",
                HELP,
            );
        }
        let Some(value) = self.value(pedit) else { return };
        let mask = match expected(self, &["retain"]) {
            Some(retain) => self.value(retain).map(|mask| mask.get_ref().as_str()),
            None => Some("0xff"),
        };
        let bits = number(value.get_ref()).zip(mask.and_then(number));
        match bits {
            Some((byte, mask)) if byte <= 0xff && mask & 0xfc == 0xfc => {
                if mask & 3 != 0 && byte & 3 != 0 {
                    return self.problem(value, "the two bits of ECN can't be set", HELP);
                }
                self.change(setting(
                    &value.span(),
                    "set_dscp",
                    Given::Integer((byte >> 2).into()),
                ));
            }
            _ => return self.problem(value, "only all six bits of the DSCP can be set", HELP),
        }
        self.control(pedit, ControlAction::Action);
    }

    /// Reports a word, and skips the rest.
    pub(super) fn problem(&mut self, word: &Word, message: &str, help: &str) {
        self.problems.add(word.span(), message, "not here", help);
        self.words = [].iter();
    }
}

fn entry(word: &Word, key: &str, given: Given) -> Written {
    setting(&word.span(), key, given)
}

fn entry_at(key_word: &Word, value: &Word, key: &str, given: Given) -> Written {
    (
        Spanned::new(key_word.span(), key.to_owned()),
        Spanned::new(value.span(), given),
    )
}

/// Whether a word is a kind of action.
pub(super) fn is_kind(word: &Word) -> bool {
    let kinds = [
        "gact",
        "police",
        "mirred",
        "skbedit",
        "pedit",
        "connmark",
        "ctinfo",
        "csum",
        "nat",
        "vlan",
        "mpls",
        "tunnel_key",
        "ife",
        "skbmod",
        "ct",
        "bpf",
        "sample",
        "gate",
    ];
    kinds.contains(&word.get_ref().as_str()) || is_control(word)
}

/// Whether a word says what happens to the packet.
fn is_control(word: &Word) -> bool {
    word.get_ref() == "goto" || next_of(word.get_ref()).is_some()
}

/// Returns what a word says about the rest: `action_a2n` in iproute2's tc_util.c.
fn next_of(word: &str) -> Option<ControlAction> {
    const WORDS: [&str; 7] = ["continue", "drop", "shot", "pass", "ok", "reclassify", "pipe"];
    // One letter is left to the words of filters.
    let word = full(word, &WORDS).filter(|_| word.len() > 1)?;
    Some(match word {
        "pipe" => ControlAction::Action,
        "pass" | "ok" => ControlAction::Pass,
        "drop" | "shot" => ControlAction::Drop,
        "continue" => ControlAction::Filter,
        "reclassify" => ControlAction::Again,
        _ => return None,
    })
}
