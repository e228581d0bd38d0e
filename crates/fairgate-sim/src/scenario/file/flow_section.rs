//! The keys of `[[simulate.flow]]`.

use std::ops::Range;

use fairgate_config::{Table, WrittenDscp};
use serde::Deserialize;
use toml::Spanned;

use super::drawn::Drawn;
use super::recording::PcapSection;
use super::sources::{
    AdaptiveSection, GameSection, PingSection, RequestSection, SshSection, TorrentSection, VideoSection,
    VoipSection, WebSection,
};
use super::span;
use super::traffic::{TcpSection, UdpSection};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowSection {
    pub(super) name: Spanned<String>,
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) udp: Option<Spanned<UdpSection>>,
    pub(super) tcp: Option<Spanned<TcpSection>>,
    pub(super) video: Option<Spanned<VideoSection>>,
    pub(super) voip: Option<Spanned<VoipSection>>,
    pub(super) game: Option<Spanned<GameSection>>,
    pub(super) ping: Option<Spanned<PingSection>>,
    pub(super) ssh: Option<Spanned<SshSection>>,
    pub(super) request: Option<Spanned<RequestSection>>,
    pub(super) web: Option<Spanned<WebSection>>,
    pub(super) adaptive: Option<Spanned<AdaptiveSection>>,
    pub(super) torrent: Option<Spanned<TorrentSection>>,
    pub(super) pcap: Option<Spanned<PcapSection>>,
    pub(super) both: Option<Spanned<bool>>,
    pub(super) start: Option<Spanned<Drawn>>,
    pub(super) stop: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) stagger: Option<Spanned<Drawn>>,
    pub(super) arrivals: Option<Spanned<ArrivalsSection>>,
    pub(super) lifetime: Option<Spanned<Drawn>>,
    #[serde(default)]
    pub(super) gives_up: bool,
    pub(super) rows: Option<bool>,
    pub(super) dscp: Option<Spanned<WrittenDscp>>,
    pub(super) priority: Option<Spanned<u8>>,
    #[serde(default)]
    pub(super) ecn: bool,
    #[serde(default)]
    pub(super) mark: u32,
    pub(super) class: Option<Spanned<String>>,
    pub(super) departs_after: Option<Spanned<String>>,
    pub(super) port: Option<u16>,
    pub(super) route: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) each: Option<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArrivalsSection {
    pub(super) rate: Option<Spanned<String>>,
    pub(super) interval: Option<Spanned<Drawn>>,
    pub(super) load: Option<Spanned<String>>,
}

impl FlowSection {
    /// Returns where `field` is written, or the flow's name.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "to" => Some(self.to.span()),
            "count" => span(&self.count),
            "dscp" => span(&self.dscp),
            "priority" => span(&self.priority),
            "start" => span(&self.start),
            "stagger" => span(&self.stagger),
            "arrivals" => span(&self.arrivals),
            "lifetime" => span(&self.lifetime),
            "stop" => span(&self.stop),
            "departs_after" => span(&self.departs_after),
            "route" => span(&self.route),
            // An application may be made of the datagrams or the connections that are wrong.
            "udp" => span(&self.udp).or_else(|| self.program()),
            "tcp" => self.program().or_else(|| span(&self.tcp)),
            "video" | "voip" | "ping" | "pcap" => self.program(),
            _ => None,
        }
        .unwrap_or_else(|| self.name.span())
    }

    /// Returns the keys that say what is sent, with their locations, in the order of the documentation.
    pub(super) fn programs(&self) -> Vec<(&'static str, Range<usize>)> {
        let spans = [
            ("video", self.video.as_ref().map(Spanned::span)),
            ("voip", self.voip.as_ref().map(Spanned::span)),
            ("game", self.game.as_ref().map(Spanned::span)),
            ("ping", self.ping.as_ref().map(Spanned::span)),
            ("ssh", self.ssh.as_ref().map(Spanned::span)),
            ("request", self.request.as_ref().map(Spanned::span)),
            ("web", self.web.as_ref().map(Spanned::span)),
            ("adaptive", self.adaptive.as_ref().map(Spanned::span)),
            ("torrent", self.torrent.as_ref().map(Spanned::span)),
            ("pcap", self.pcap.as_ref().map(Spanned::span)),
        ];
        let given = spans.into_iter().filter_map(|(key, span)| Some((key, span?)));
        given.collect()
    }

    /// Returns where the application is written.
    pub(super) fn program(&self) -> Option<Range<usize>> {
        self.programs().into_iter().next().map(|(_, span)| span)
    }
}
