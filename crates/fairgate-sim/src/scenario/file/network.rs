//! Nodes and links: `[[simulate.node]]`, `[[simulate.link]]`, and the network of `[run]`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use fairgate_config::run::Keys;
use fairgate_config::{FileError, ShardBy, Spec, Table, UnknownShardBy, Workers, suggest};
use serde::Deserialize;
use toml::Spanned;

use super::drawn::Drawn;
use super::line::{LossValue, RateValue};
use super::names::Network;
use super::repeat::Copy;
use super::{Reader, Section, span};
use crate::scenario::{Jitter, LineRate, Link, Queue};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeSection {
    name: Spanned<String>,
    address: Option<Spanned<String>>,
    processing: Option<Spanned<Drawn>>,
    each: Option<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkSection {
    name: Option<Spanned<String>>,
    a: Spanned<String>,
    b: Spanned<String>,
    rate: Option<RateValue>,
    rate_a: Option<RateValue>,
    rate_b: Option<RateValue>,
    delay: Option<Spanned<String>>,
    delay_a: Option<Spanned<String>>,
    delay_b: Option<Spanned<String>>,
    jitter: Option<Spanned<Drawn>>,
    jitter_a: Option<Spanned<Drawn>>,
    jitter_b: Option<Spanned<Drawn>>,
    reorder: Option<Spanned<bool>>,
    reorder_a: Option<Spanned<bool>>,
    reorder_b: Option<Spanned<bool>>,
    loss: Option<LossValue>,
    loss_a: Option<LossValue>,
    loss_b: Option<LossValue>,
    overhead: Option<Spanned<u32>>,
    queue: Option<Spanned<String>>,
    queue_a: Option<Spanned<String>>,
    queue_b: Option<Spanned<String>>,
    workers: Option<Spanned<u16>>,
    workers_a: Option<Spanned<u16>>,
    workers_b: Option<Spanned<u16>>,
    shard_by: Option<Spanned<String>>,
    each: Option<Table>,
}

impl LinkSection {
    /// Returns where `field` is written, or where the link begins.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "b" => Some(self.b.span()),
            "delay_a" => span(&self.delay_a).or(span(&self.delay)),
            "delay_b" => span(&self.delay_b).or(span(&self.delay)),
            "jitter_a" => span(&self.jitter_a).or(span(&self.jitter)),
            "jitter_b" => span(&self.jitter_b).or(span(&self.jitter)),
            "overhead" => span(&self.overhead),
            "queue_a" => span(&self.queue_a).or(span(&self.queue)),
            "queue_b" => span(&self.queue_b).or(span(&self.queue)),
            _ => None,
        }
        .unwrap_or_else(|| self.a.span())
    }
}

impl NodeSection {
    /// Returns where `field` is written, or the node's name.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "processing" => span(&self.processing),
            _ => None,
        }
        .unwrap_or_else(|| self.name.span())
    }
}

impl Reader<'_> {
    /// Adds a node, or a node for each copy.
    pub(super) fn add_nodes(&self, network: &mut Network, node: &NodeSection) -> Result<(), FileError> {
        for copy in self.copies(node.each.as_ref())? {
            self.add_node(network, node, &copy)?;
        }
        Ok(())
    }

    fn add_node(&self, network: &mut Network, node: &NodeSection, copy: &Copy) -> Result<(), FileError> {
        let name = self.fill(&node.name, copy)?;
        let Some(id) = network.add(&name) else {
            return Err(self.document.error(
                node.name.span(),
                format!("there are two nodes with the name `{name}`"),
                "give each node a different name; with `each`, write every variable in it: \"host-{i}\"",
            ));
        };
        if let Some(address) = &node.address {
            let text = self.fill(address, copy)?;
            network.scenario.nodes[id.index()].address = text.parse::<IpAddr>().map_err(|error| {
                self.document.error(
                    address.span(),
                    format!("`{text}` is not an IP address: {error}"),
                    "write an IPv4 or IPv6 address, such as \"192.168.1.2\"",
                )
            })?;
        }
        if let Some(processing) = &node.processing {
            network.scenario.nodes[id.index()].processing = Some(self.durations(processing)?);
        }
        Ok(())
    }

    /// Adds the network of `[run]`: a router between two hosts. It has the queues of the live data plane,
    /// followed by its delay. The links themselves have no transmission time.
    pub(super) fn add_run_network(&self, network: &mut Network, section: &Section) -> Result<(), FileError> {
        let Some(run) = Keys::read(self.document)? else {
            return Err(self.document.error(
                section.location("duration"),
                "this scenario has no links, and there is no [run] section that describes a network",
                "add a [[simulate.link]] with the two nodes `a` and `b` that it connects",
            ));
        };
        let [left, router, right] = ["left", "router", "right"].map(|name| network.find_or_add(name));
        let links = &mut network.scenario.links;
        links.push(
            Link::unlimited(left, router, Duration::ZERO)
                .with_queue_b(self.queue(run.text("right_to_left").as_ref())?),
        );
        links.push(
            Link::unlimited(router, right, run.values.delay)
                .with_queue_a(self.queue(run.text("left_to_right").as_ref())?),
        );
        Ok(())
    }

    /// Adds the link of section `index`, or a link for each copy.
    pub(super) fn add_links(
        &self,
        network: &mut Network,
        index: usize,
        link: &LinkSection,
    ) -> Result<(), FileError> {
        for copy in self.copies(link.each.as_ref())? {
            let link = self.link(network, link, &copy)?;
            network.add_link(link, index);
        }
        Ok(())
    }

    fn link(&self, network: &mut Network, link: &LinkSection, copy: &Copy) -> Result<Link, FileError> {
        let (a, b) = (self.fill(&link.a, copy)?, self.fill(&link.b, copy)?);
        let (a, b) = (network.find_or_add(&a), network.find_or_add(&b));
        let [delay_a, delay_b] = self
            .ends(&link.delay, &link.delay_a, &link.delay_b)?
            .map(|delay| delay.map_or(Ok(Duration::ZERO), |text| self.duration(text)));
        let [rate_a, rate_b] = self
            .ends(&link.rate, &link.rate_a, &link.rate_b)?
            .map(|rate| rate.map_or(Ok(LineRate::Unlimited), |rate| self.line_rate(rate)));
        let [loss_a, loss_b] = self
            .ends(&link.loss, &link.loss_a, &link.loss_b)?
            .map(|loss| loss.map(|loss| self.loss(loss)).transpose());
        let [queue_a, queue_b] = self.queues(link, copy)?;
        let [jitter_a, jitter_b] = self.jitters(link)?;
        let (rate_a, rate_b) = (rate_a?, rate_b?);
        let plain = Link::unlimited(a, b, Duration::ZERO);
        let has_trace = [&rate_a, &rate_b]
            .iter()
            .any(|rate| matches!(rate, LineRate::Trace(_)));
        // The opportunities of a trace are bytes of IP packets.
        let overhead = if has_trace { 0 } else { plain.overhead };
        let name = link.name.as_ref().map(|name| self.fill(name, copy)).transpose()?;
        Ok(Link {
            name,
            rate_a,
            rate_b,
            delay_a: delay_a?,
            delay_b: delay_b?,
            jitter_a,
            jitter_b,
            loss_a: loss_a?,
            loss_b: loss_b?,
            overhead: link
                .overhead
                .as_ref()
                .map_or(overhead, |overhead| *overhead.get_ref()),
            queue_a,
            queue_b,
            ..plain
        })
    }

    /// Returns the queues of both ends of a link.
    fn queues(&self, link: &LinkSection, copy: &Copy) -> Result<[Queue; 2], FileError> {
        let names = self.ends(&link.queue, &link.queue_a, &link.queue_b)?;
        let workers = self.ends(&link.workers, &link.workers_a, &link.workers_b)?;
        if let Some(by) = &link.shard_by
            && workers == [None, None]
        {
            return Err(self.document.error(
                by.span(),
                "`shard_by` says what workers divide, but there is one worker",
                "add `workers`, `workers_a` or `workers_b`, or remove this key",
            ));
        }
        let by = self.shard_by(link.shard_by.as_ref())?;
        let queue = |end: usize| {
            let spec = match (names[end], self.default_queue) {
                (Some(name), _) => Some(self.named_tree(name, &self.fill(name, copy)?)?),
                (None, Some(name)) => Some(self.named_tree(name, name.get_ref())?),
                (None, None) => None,
            };
            match (spec, workers[end]) {
                (Some(spec), Some(workers)) => self.sharded(spec, workers, by),
                (None, Some(workers)) if *workers.get_ref() != 1 => Err(self.document.error(
                    workers.span(),
                    "this end has no queue that workers could run",
                    "name its queue, or give the workers to the other end: `workers_a`, `workers_b`",
                )),
                (Some(spec), None) => Ok(spec.into()),
                (None, _) => Ok(Queue::default()),
            }
        };
        Ok([queue(0)?, queue(1)?])
    }

    fn shard_by(&self, by: Option<&Spanned<String>>) -> Result<ShardBy, FileError> {
        let Some(by) = by else {
            return Ok(ShardBy::default());
        };
        by.get_ref().parse().map_err(|UnknownShardBy| {
            let names = ShardBy::ALL.map(ShardBy::name);
            self.document.error(
                by.span(),
                format!("`{}` is nothing that workers can divide", by.get_ref()),
                suggest::remedy(by.get_ref(), "the possible words", names),
            )
        })
    }

    /// Returns the queue for this number of workers.
    fn sharded(&self, spec: Spec, workers: &Spanned<u16>, by: ShardBy) -> Result<Queue, FileError> {
        match *workers.get_ref() {
            1 => Ok(spec.into()),
            count if (2..=Workers::MOST).contains(&count) => {
                let sharded = spec.sharded(Workers { count, by });
                sharded
                    .map(Queue::from)
                    .map_err(|problem| FileError::from(*problem))
            }
            count => Err(self.document.error(
                workers.span(),
                format!("there can't be {count} workers"),
                format!("write a number from 1 to {}", Workers::MOST),
            )),
        }
    }

    /// Returns the values of a key for both ends of a link: `key`, or `key_a` and `key_b`.
    fn ends<'v, T>(
        &self,
        both: &'v Option<Spanned<T>>,
        a: &'v Option<Spanned<T>>,
        b: &'v Option<Spanned<T>>,
    ) -> Result<[Option<&'v Spanned<T>>; 2], FileError> {
        match (both, a.as_ref().or(b.as_ref())) {
            (Some(_), Some(one)) => Err(self.document.error(
                one.span(),
                "this is given for both ends and also for one end",
                "give it once for both ends, or once for each end (`..._a`, `..._b`)",
            )),
            (Some(both), None) => Ok([Some(both), Some(both)]),
            (None, _) => Ok([a.as_ref(), b.as_ref()]),
        }
    }

    fn jitters(&self, link: &LinkSection) -> Result<[Option<Jitter>; 2], FileError> {
        let jitters = self.ends(&link.jitter, &link.jitter_a, &link.jitter_b)?;
        let reorders = self.ends(&link.reorder, &link.reorder_a, &link.reorder_b)?;
        let read = |index: usize| match (jitters[index], reorders[index]) {
            (Some(delay), reorder) => Ok(Some(Jitter {
                delay: self.durations(delay)?,
                reorder: reorder.is_some_and(|reorder| *reorder.get_ref()),
            })),
            // `reorder` for both ends is for those that have jitter.
            (None, Some(reorder)) if link.reorder.is_none() || jitters.iter().all(Option::is_none) => {
                Err(self.document.error(
                    reorder.span(),
                    "without jitter no packet can overtake another one, so `reorder` has no effect",
                    "add jitter, such as jitter = { exponential = \"2ms\" }, or remove this key",
                ))
            }
            (None, _) => Ok(None),
        };
        Ok([read(0)?, read(1)?])
    }

    /// Checks that the name of each link is unique, and that no node has it: a route may contain both.
    pub(super) fn check_link_names(
        &self,
        network: &Network,
        sections: &[LinkSection],
    ) -> Result<(), FileError> {
        let mut names = BTreeSet::new();
        for (index, link) in network.scenario.links.iter().enumerate() {
            let section = network.link_section(index).map(|section| &sections[section]);
            let (Some(name), Some(written)) = (&link.name, section.and_then(|section| section.name.as_ref()))
            else {
                continue;
            };
            let of_node = network.find(name).is_some();
            if of_node || !names.insert(name) {
                let what = if of_node { "a node" } else { "another link" };
                return Err(self.document.error(
                    written.span(),
                    format!("{what} has the name `{name}`, too"),
                    "give each node and each link a different name",
                ));
            }
        }
        Ok(())
    }
}
