//! The program of a flow: what its keys say that it sends.

use fairgate::registry::Unit;
use fairgate_config::{FileError, Table};

use super::flow_section::programs;
use super::sent::Sent;
use super::sources::Peers;
use super::{Reader, place};
use crate::scenario::{Tcp, Traffic};
use crate::tcp::{self, CongestionControl};

impl Reader<'_> {
    /// Returns what a flow sends.
    pub(super) fn sent(&self, flow: &Table) -> Result<Sent, FileError> {
        let programs = programs(flow);
        let [udp, tcp] = ["udp", "tcp"].map(|key| flow.table(key));
        let sent = match (udp, programs.as_slice()) {
            (_, [(first, _), (second, span), ..]) => {
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
            (None, [(program, _)]) => self.program(flow, program)?,
            (udp, []) => match (udp, tcp) {
                (Some(udp), None) => Traffic::Udp(self.udp(&udp)?).into(),
                (None, Some(tcp)) => Traffic::from(self.tcp(&tcp)?).into(),
                (Some(_), Some(tcp)) => {
                    return Err(self.document.error(
                        tcp.span(),
                        "`udp` and `tcp` both say what is sent",
                        "write a [[simulate.flow]] for each",
                    ));
                }
                (None, None) => {
                    let name = flow.text("name").map_or(String::new(), |name| name.into_inner());
                    return Err(self.document.error(
                        place(flow, "name"),
                        format!("flow `{name}` sends nothing"),
                        "add what it sends: udp = { rate = \"1mbit\" } or tcp = {}, or an application such \
                         as voip = {}",
                    ));
                }
            },
        };
        self.with_directions(flow, sent)
    }

    /// Applies the flow's key `both`.
    fn with_directions(&self, flow: &Table, sent: Sent) -> Result<Sent, FileError> {
        let Some(both) = flow.plain::<bool>("both", Unit::Flag) else {
            return Ok(sent);
        };
        match (both, sent.has_back()) {
            (true, true) | (false, false) => Ok(sent),
            (false, true) => Ok(sent.without_back()),
            (true, false)
                if sent.forth.is_opened_by_destination()
                    || matches!(sent.forth, Traffic::Ping(_) | Traffic::Recorded(_)) =>
            {
                Err(self.document.error(
                    place(flow, "both"),
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

    fn program(&self, flow: &Table, program: &str) -> Result<Sent, FileError> {
        let table = flow.table(program).unwrap_or_default();
        let tcp = flow.table("tcp");
        let is_over_tcp = ["ssh", "request", "web", "adaptive", "torrent"].contains(&program);
        let config = match &tcp {
            Some(tcp) if !is_over_tcp => {
                return Err(self.document.error(
                    tcp.span(),
                    format!("`{program}` does not use TCP"),
                    "omit `tcp`, or write a flow of its own",
                ));
            }
            Some(tcp) => self.transport(tcp, program)?,
            None => tcp::Config::default(),
        };
        let over_tcp = |application| {
            Traffic::from(Tcp {
                config: config.clone(),
                application,
            })
        };
        Ok(match program {
            "video" => Traffic::from(self.video(&table)?).into(),
            "voip" => {
                let voice = Traffic::from(self.voice(&table)?);
                Sent::both(voice.clone(), voice)
            }
            "game" => {
                let [server, client] = self.game(&table)?.map(Traffic::from);
                Sent::both(server, client)
            }
            "ping" => Traffic::from(self.ping(&table)?).into(),
            "pcap" => self.recorded(&table)?,
            "ssh" => {
                let session = over_tcp(self.ssh(&table));
                Sent::both(session.clone(), session)
            }
            "request" => over_tcp(self.requests(&table)?).into(),
            "web" => over_tcp(self.web(&table)?).into(),
            "adaptive" => over_tcp(self.adaptive(&table)).into(),
            _ => self.torrent(flow, &table, config)?,
        })
    }

    /// Peers that exchange data without end. Their congestion control is LEDBAT, unless `tcp` names another.
    fn torrent(&self, flow: &Table, torrent: &Table, config: tcp::Config) -> Result<Sent, FileError> {
        let names_control = flow
            .table("tcp")
            .is_some_and(|tcp| tcp.span_of("congestion_control").is_some());
        let config = match names_control {
            true => config,
            false => tcp::Config {
                congestion_control: CongestionControl::Ledbat,
                ..config
            },
        };
        if let Some(count) = flow.span_of("count") {
            return Err(self.document.error(
                count,
                "a torrent has its numbers of flows in `down` and `up`",
                "omit `count`",
            ));
        }
        let traffic = Traffic::from(Tcp::bulk(config));
        let Peers { down, up } = Peers::read(torrent);
        let mut downloads = Sent::from(traffic.clone());
        downloads.count = Some(down);
        match up {
            0 => Ok(downloads),
            up => Ok(downloads.with_back(traffic, Some(up))),
        }
    }
}
