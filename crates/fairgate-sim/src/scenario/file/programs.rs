//! The program of a flow: what its keys say that it sends.

use std::ops::Range;

use fairgate_config::FileError;
use toml::Spanned;

use super::Reader;
use super::flow_section::FlowSection;
use super::sent::Sent;
use super::sources::TorrentSection;
use crate::scenario::{Tcp, Traffic};
use crate::tcp::{self, CongestionControl};

impl Reader<'_> {
    /// Returns what a flow sends.
    pub(super) fn sent(&self, flow: &FlowSection) -> Result<Sent, FileError> {
        let programs = flow.programs();
        let sent = match (&flow.udp, programs.as_slice()) {
            (_, [_, (second, span), ..]) => {
                let first = programs[0].0;
                return Err(self.document.error(
                    span.clone(),
                    format!("`{first}` and `{second}` both say what is sent"),
                    "write a [[simulate.flow]] for each",
                ));
            }
            (Some(udp), [(program, _)]) => {
                return Err(self.document.error(
                    udp.span(),
                    format!("`{program}` and `udp` both say what is sent"),
                    "omit `udp`",
                ));
            }
            (None, [(program, span)]) => self.program(flow, program, span)?,
            (udp, []) => match (udp, &flow.tcp) {
                (Some(udp), None) => Traffic::Udp(udp.get_ref().read(self, &udp.span())?).into(),
                (None, Some(tcp)) => Traffic::from(tcp.get_ref().read(self, &tcp.span())?).into(),
                (Some(_), Some(tcp)) => {
                    return Err(self.document.error(
                        tcp.span(),
                        "`udp` and `tcp` both say what is sent",
                        "write a [[simulate.flow]] for each",
                    ));
                }
                (None, None) => {
                    return Err(self.document.error(
                        flow.name.span(),
                        format!("flow `{}` sends nothing", flow.name.get_ref()),
                        "add what it sends: udp = { rate = \"1mbit\" } or tcp = {}, or an application such \
                         as voip = {}",
                    ));
                }
            },
        };
        self.with_directions(flow, sent)
    }

    /// Applies the flow's key `both`.
    fn with_directions(&self, flow: &FlowSection, sent: Sent) -> Result<Sent, FileError> {
        let Some(both) = &flow.both else {
            return Ok(sent);
        };
        match (both.get_ref(), sent.has_back()) {
            (true, true) | (false, false) => Ok(sent),
            (false, true) => Ok(sent.without_back()),
            (true, false)
                if sent.forth.is_opened_by_destination()
                    || matches!(sent.forth, Traffic::Ping(_) | Traffic::Recorded(_)) =>
            {
                Err(self.document.error(
                    both.span(),
                    "this application has both directions in one flow, or only one direction",
                    "omit `both`",
                ))
            }
            (true, false) => {
                let back = sent.forth.clone();
                Ok(sent.with_back(back, None))
            }
        }
    }

    fn program(&self, flow: &FlowSection, program: &str, span: &Range<usize>) -> Result<Sent, FileError> {
        if let Some(section) = &flow.video {
            self.refuse_tcp(flow, program)?;
            return Ok(Traffic::from(section.get_ref().read(self, span)?).into());
        }
        if let Some(section) = &flow.voip {
            self.refuse_tcp(flow, program)?;
            let voice = Traffic::from(section.get_ref().read(self, span)?);
            return Ok(Sent::both(voice.clone(), voice));
        }
        if let Some(section) = &flow.game {
            self.refuse_tcp(flow, program)?;
            let [server, client] = section.get_ref().read(self)?.map(Traffic::from);
            return Ok(Sent::both(server, client));
        }
        if let Some(section) = &flow.ping {
            self.refuse_tcp(flow, program)?;
            return Ok(Traffic::from(section.get_ref().read(self)?).into());
        }
        if let Some(section) = &flow.pcap {
            self.refuse_tcp(flow, program)?;
            return section.get_ref().read(self);
        }
        let config = match &flow.tcp {
            Some(tcp) => tcp.get_ref().transport(self, &tcp.span(), program)?,
            None => tcp::Config::default(),
        };
        let over_tcp = |application| {
            Traffic::from(Tcp {
                config: config.clone(),
                application,
            })
        };
        if let Some(section) = &flow.ssh {
            let session = over_tcp(section.get_ref().read(self)?);
            return Ok(Sent::both(session.clone(), session));
        }
        if let Some(section) = &flow.request {
            return Ok(over_tcp(section.get_ref().read(self)?).into());
        }
        if let Some(section) = &flow.web {
            return Ok(over_tcp(section.get_ref().read(self)?).into());
        }
        if let Some(section) = &flow.adaptive {
            return Ok(over_tcp(section.get_ref().read(self)?).into());
        }
        let section = flow.torrent.as_ref().expect("one of the programs is given");
        self.torrent(flow, section.get_ref(), config)
    }

    /// Peers that exchange data without end. Their congestion control is LEDBAT, unless `tcp` names another.
    fn torrent(
        &self,
        flow: &FlowSection,
        section: &TorrentSection,
        config: tcp::Config,
    ) -> Result<Sent, FileError> {
        let names_control = flow.tcp.as_ref().is_some_and(|tcp| tcp.get_ref().names_control());
        let config = match names_control {
            true => config,
            false => tcp::Config {
                congestion_control: CongestionControl::Ledbat,
                ..config
            },
        };
        if let Some(count) = &flow.count {
            return Err(self.document.error(
                count.span(),
                "a torrent has its numbers of flows in `down` and `up`",
                "omit `count`",
            ));
        }
        let traffic = Traffic::from(Tcp::bulk(config));
        let number =
            |given: &Option<Spanned<u32>>, plain| given.as_ref().map_or(plain, |number| *number.get_ref());
        let (down, up) = (number(&section.down, 10), number(&section.up, 5));
        if down == 0 {
            let span = section.down.as_ref().map_or(0..0, Spanned::span);
            let help = "write at least 1; for uploads alone, swap `from` and `to`";
            return Err(self.document.error(span, "no peer sends", help));
        }
        let mut downloads = Sent::from(traffic.clone());
        downloads.count = Some(down);
        match up {
            0 => Ok(downloads),
            up => Ok(downloads.with_back(traffic, Some(up))),
        }
    }

    fn refuse_tcp(&self, flow: &FlowSection, program: &str) -> Result<(), FileError> {
        match &flow.tcp {
            None => Ok(()),
            Some(tcp) => Err(self.document.error(
                tcp.span(),
                format!("`{program}` does not use TCP"),
                "omit `tcp`, or write a flow of its own",
            )),
        }
    }
}
