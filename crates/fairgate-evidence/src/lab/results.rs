//! Makes the results of a run from what was noted, with the simulator's definitions.
//!
//! A connection's packets are those that the kernel counts: the payload that arrived in order, and headers
//! for each segment with data. Its losses are retransmissions.

use std::collections::BTreeMap;
use std::time::Duration;

use fairgate_live::testbed::TcpFigures;
use fairgate_run_api::{CountStatus, DirectionStatus};
use fairgate_sim::results::{Durations, FlowResults, GroupResults, InterfaceResults, Rates, Results, Totals};
use fairgate_sim::{Scenario, Traffic};

use crate::lab::copies::Copy;
use crate::lab::layout::{Layout, TCP_HEADERS, UDP_HEADERS};
use crate::lab::samples::{self, Arrival, Sample};

/// Where in the samples the measurement window and the intervals are.
struct Times {
    /// The measurement window, ns.
    window: [u64; 2],
    /// The samples at the ends of the window.
    ends: [usize; 2],
    /// The samples at the beginning and at the end of each interval.
    intervals: Vec<usize>,
    interval: u64,
}

/// What was measured of a flow's copy.
struct Measured {
    row: FlowResults,
    delays: Vec<u64>,
    transfers: Vec<u64>,
}

pub(crate) fn of(scenario: &Scenario, layout: &Layout, copies: &[Copy<'_>], samples: &[Sample]) -> Results {
    let times = Times::of(scenario, samples);
    let measured: Vec<Measured> = copies
        .iter()
        .enumerate()
        .map(|(index, copy)| of_copy(scenario, &times, index, copy, samples))
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for flow in &scenario.flows {
        if !names.contains(&flow.group_name()) {
            names.push(flow.group_name());
        }
    }
    let groups: Vec<GroupResults> = names
        .iter()
        .map(|name| {
            let members = measured.iter().filter(|copy| copy.row.group == *name);
            of_group(scenario, &times, name, &members.collect::<Vec<_>>())
        })
        .collect();
    let goodput = measured.iter().map(|copy| copy.row.goodput_bps as f64);
    let interfaces = layout.wires.iter().enumerate().flat_map(|(link, wire)| {
        let times = &times;
        [0, 1].map(move |end| {
            let name = wire.names[end].clone();
            of_interface(name, wire.rates[end], times, samples, link, end)
        })
    });
    Results {
        seed: scenario.seed,
        duration_ns: nanos(scenario.duration),
        measured_ns: times.window,
        interval_ns: times.interval,
        events: 0,
        packet_hops: 0,
        goodput_bps: groups.iter().map(|group| group.goodput_bps).sum(),
        jain: fairgate::jain_index(goodput),
        interfaces: interfaces.collect(),
        flows: measured.into_iter().map(|copy| copy.row).collect(),
        groups,
        cells: Vec::new(),
        observations: Vec::new(),
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Times {
    fn of(scenario: &Scenario, samples: &[Sample]) -> Times {
        let planned = samples::times(scenario);
        let place = |time: Duration| {
            let index = planned.binary_search(&time).expect("a sample was planned for it");
            index.min(samples.len().saturating_sub(1))
        };
        let window = [scenario.measure.start, scenario.measure.end];
        let intervals = scenario.duration.as_nanos() / scenario.interval.as_nanos().max(1);
        Times {
            window: window.map(nanos),
            ends: window.map(place),
            intervals: (0..=intervals as u32)
                .map(|interval| place(scenario.interval * interval))
                .collect(),
            interval: nanos(scenario.interval),
        }
    }

    /// Returns the number of the interval at a time.
    fn interval_at(&self, time: u64) -> Option<usize> {
        let index = (time / self.interval.max(1)) as usize;
        (index + 1 < self.intervals.len()).then_some(index)
    }

    fn is_measured(&self, time: u64) -> bool {
        (self.window[0]..self.window[1]).contains(&time)
    }
}

/// Returns the rate of bytes in a time.
fn rate(bytes: u64, nanos: u64) -> u64 {
    let bits = u128::from(bytes) * 8_000_000_000;
    bits.checked_div(nanos.into()).unwrap_or(0) as u64
}

fn of_copy(
    scenario: &Scenario,
    times: &Times,
    index: usize,
    copy: &Copy<'_>,
    samples: &[Sample],
) -> Measured {
    let ended = *copy.notes.ended.lock().expect("all threads have ended");
    let row = FlowResults {
        name: copy.name.clone(),
        group: copy.flow.group_name().to_owned(),
        source: scenario.node_name(copy.flow.source).to_owned(),
        destination: scenario.node_name(copy.flow.destination).to_owned(),
        transport: copy.flow.traffic.transport().to_owned(),
        started_ns: nanos(copy.start),
        ended_ns: ended.or((copy.stop < scenario.duration).then(|| nanos(copy.stop))),
        sent: 0,
        received: 0,
        lost: 0,
        lost_by_reason: BTreeMap::new(),
        loss_ratio: 0.0,
        marked: 0,
        throughput_bps: 0,
        goodput_bps: 0,
        delay: Durations::of_all([]),
        jitter_ns: 0,
        series_from_ns: 0,
        throughput_series_bps: Vec::new(),
        whole_run: no_totals(),
        connection: None,
        application: None,
    };
    match copy.flow.traffic {
        Traffic::Tcp(_) => of_connection(row, times, index, copy, samples),
        _ => of_datagrams(row, times, copy),
    }
}

/// Returns the bytes of the packets that brought a connection's data.
fn packet_bytes(receiver: &TcpFigures) -> u64 {
    receiver.bytes_received + u64::from(receiver.data_segments_in) * u64::from(TCP_HEADERS)
}

fn of_connection(
    mut row: FlowResults,
    times: &Times,
    index: usize,
    copy: &Copy<'_>,
    samples: &[Sample],
) -> Measured {
    let at = |sample: usize| -> [TcpFigures; 2] { samples[sample].connections[index].unwrap_or_default() };
    let [first, last] = times.ends.map(at);
    let elapsed = samples[times.ends[1]].at - samples[times.ends[0]].at;
    let less = |figure: fn(&[TcpFigures; 2]) -> u64| figure(&last).saturating_sub(figure(&first));
    row.sent = less(|ends| ends[0].data_segments_out.into());
    row.lost = less(|ends| ends[0].retransmissions.into()).min(row.sent);
    row.received = less(|ends| ends[1].data_segments_in.into());
    row.loss_ratio = row.lost as f64 / row.sent.max(1) as f64;
    row.throughput_bps = rate(less(|ends| packet_bytes(&ends[1])), elapsed);
    row.goodput_bps = rate(less(|ends| ends[1].bytes_received), elapsed);
    row.throughput_series_bps = times
        .intervals
        .windows(2)
        .map(|ends| {
            let [before, after] = [ends[0], ends[1]].map(|sample| packet_bytes(&at(sample)[1]));
            rate(
                after.saturating_sub(before),
                samples[ends[1]].at - samples[ends[0]].at,
            )
        })
        .collect();
    let whole = at(samples.len() - 1);
    row.whole_run = Totals {
        sent: whole[0].data_segments_out.into(),
        received: whole[1].data_segments_in.into(),
        lost: whole[0].retransmissions.into(),
        received_bytes: packet_bytes(&whole[1]),
        ..no_totals()
    };
    let transfers = copy.notes.transfers.lock().expect("all threads have ended");
    Measured {
        row,
        delays: Vec::new(),
        transfers: transfers
            .iter()
            .filter(|(end, _)| times.is_measured(*end))
            .map(|&(_, took)| took)
            .collect(),
    }
}

fn of_datagrams(mut row: FlowResults, times: &Times, copy: &Copy<'_>) -> Measured {
    let sent = copy.notes.sent.lock().expect("all threads have ended");
    let arrivals = copy.notes.arrivals.lock().expect("all threads have ended");
    let in_window = sent.iter().filter(|(at, _)| times.is_measured(*at));
    row.sent = in_window.count() as u64;
    // A packet counts as lost by the time at which it was sent.
    let came = arrivals.iter().filter(|arrival| times.is_measured(arrival.sent));
    row.lost = row.sent.saturating_sub(came.count() as u64);
    row.loss_ratio = row.lost as f64 / row.sent.max(1) as f64;
    let measured: Vec<&Arrival> = arrivals
        .iter()
        .filter(|arrival| times.is_measured(arrival.arrived))
        .collect();
    row.received = measured.len() as u64;
    let bytes: u64 = measured.iter().map(|arrival| u64::from(arrival.bytes)).sum();
    let window = times.window[1] - times.window[0];
    row.throughput_bps = rate(bytes, window);
    row.goodput_bps = rate(bytes - row.received * u64::from(UDP_HEADERS), window);
    let delay = |arrival: &&Arrival| arrival.arrived.saturating_sub(arrival.sent);
    let delays: Vec<u64> = measured.iter().map(delay).collect();
    row.delay = Durations::of_all(delays.iter().copied());
    let differences = delays.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    let pairs = delays.len().saturating_sub(1).max(1) as u64;
    row.jitter_ns = differences.sum::<u64>() / pairs;
    let mut series = vec![0u64; times.intervals.len() - 1];
    for arrival in arrivals.iter() {
        if let Some(interval) = times.interval_at(arrival.arrived) {
            series[interval] += u64::from(arrival.bytes);
        }
    }
    row.throughput_series_bps = series.iter().map(|&bytes| rate(bytes, times.interval)).collect();
    let of_all = |lengths: &mut dyn Iterator<Item = u32>| -> u64 { lengths.map(u64::from).sum() };
    row.whole_run = Totals {
        sent: sent.len() as u64,
        received: arrivals.len() as u64,
        lost: (sent.len() as u64).saturating_sub(arrivals.len() as u64),
        sent_bytes: of_all(&mut sent.iter().map(|&(_, bytes)| bytes)),
        received_bytes: of_all(&mut arrivals.iter().map(|arrival| arrival.bytes)),
        ..no_totals()
    };
    Measured {
        row,
        delays,
        transfers: Vec::new(),
    }
}

fn no_totals() -> Totals {
    Totals {
        sent: 0,
        received: 0,
        lost: 0,
        in_flight: 0,
        sent_bytes: 0,
        received_bytes: 0,
        lost_bytes: 0,
        in_flight_bytes: 0,
    }
}

fn of_group(scenario: &Scenario, times: &Times, name: &str, members: &[&Measured]) -> GroupResults {
    let rows = || members.iter().map(|copy| &copy.row);
    let sum = |figure: fn(&FlowResults) -> u64| rows().map(figure).sum::<u64>();
    let flows = scenario.flows.iter().filter(|flow| flow.group_name() == name);
    let count: u64 = flows.clone().map(|flow| u64::from(flow.count)).sum();
    let transport = flows.clone().next().map_or("", |flow| flow.traffic.transport());
    let delays = || members.iter().flat_map(|copy| copy.delays.iter().copied());
    let delay = Durations::of_all(delays());
    let means = rows().map(|row| row.delay.mean_ns).filter(|mean| *mean > 0);
    let (heard, inverse) = means.fold((0.0, 0.0), |(heard, inverse), mean| {
        (heard + 1.0, inverse + 1.0 / mean as f64)
    });
    let intervals = times.intervals.len() - 1;
    let series = (0..intervals).map(|point| {
        rows()
            .map(|row| row.throughput_series_bps.get(point).copied().unwrap_or(0))
            .sum()
    });
    let (sent, lost) = (sum(|row| row.sent), sum(|row| row.lost));
    let end = nanos(scenario.duration);
    let active =
        |row: &FlowResults, time: u64| (row.started_ns..row.ended_ns.unwrap_or(u64::MAX)).contains(&time);
    let seconds_active = rows().map(|row| {
        let from = row.started_ns.max(times.window[0]);
        let to = row.ended_ns.unwrap_or(end).min(times.window[1]);
        to.saturating_sub(from) as f64
    });
    let window = (times.window[1] - times.window[0]) as f64;
    let ended = rows()
        .filter(|row| row.ended_ns.is_some_and(|at| at <= end))
        .count() as u64;
    let jitters = || rows().filter(|row| row.received > 1).map(|row| row.jitter_ns);
    let while_active = rows().filter_map(|row| {
        let from = row.started_ns.max(times.window[0]);
        let to = row.ended_ns.unwrap_or(end).min(times.window[1]);
        let share = to.checked_sub(from).filter(|nanos| *nanos > 0)? as f64 / window;
        Some((row.goodput_bps as f64 / share) as u64)
    });
    GroupResults {
        name: name.to_owned(),
        transport: transport.to_owned(),
        flows: count,
        started: members.len() as u64,
        ended,
        gave_up: 0,
        offered: 0,
        blocked: 0,
        active: (members.len() as u64).saturating_sub(ended),
        active_mean: seconds_active.sum::<f64>() / window,
        goodput_bps: sum(|row| row.goodput_bps),
        goodput: Rates::of_all(while_active),
        jain: fairgate::jain_index(rows().map(|row| row.goodput_bps as f64)),
        sent,
        received: sum(|row| row.received),
        lost,
        lost_by_reason: BTreeMap::new(),
        loss_ratio: lost as f64 / sent.max(1) as f64,
        marked: 0,
        throughput_bps: sum(|row| row.throughput_bps),
        delay_mean_ns: delay.mean_ns,
        delay_harmonic_ns: delay.mean_ns,
        delay_harmonic_of_flows_ns: if inverse > 0.0 {
            (heard / inverse) as u64
        } else {
            0
        },
        delay,
        jitter_ns: jitters().sum::<u64>() / count.max(1),
        jitter: Durations::of_all(jitters()),
        transfers: Durations::of_all(members.iter().flat_map(|copy| copy.transfers.iter().copied())),
        active_series: (1..=intervals as u64)
            .map(|point| rows().filter(|row| active(row, point * times.interval)).count() as u32)
            .collect(),
        throughput_series_bps: series.collect(),
        whole_run: Totals {
            sent: sum(|row| row.whole_run.sent),
            received: sum(|row| row.whole_run.received),
            lost: sum(|row| row.whole_run.lost),
            sent_bytes: sum(|row| row.whole_run.sent_bytes),
            received_bytes: sum(|row| row.whole_run.received_bytes),
            ..no_totals()
        },
        acknowledgements: None,
    }
}

fn of_interface(
    name: String,
    rate_of_link: Option<fairgate::Rate>,
    times: &Times,
    samples: &[Sample],
    link: usize,
    end: usize,
) -> InterfaceResults {
    let at = |sample: usize| -> Option<&DirectionStatus> {
        samples[sample].links[link]
            .as_ref()
            .map(|status| &status.directions[end])
    };
    let [first, last] = times.ends.map(at);
    let elapsed = samples[times.ends[1]].at - samples[times.ends[0]].at;
    let less = |figure: fn(&DirectionStatus) -> u64| -> u64 {
        let [first, last] = [first, last].map(|status| status.map_or(0, figure));
        last.saturating_sub(first)
    };
    let transmitted = less(|status| status.tree.dequeued.packets);
    let bytes = less(|status| status.tree.dequeued.bytes);
    let waited = |status: Option<&DirectionStatus>| status.map_or(0.0, |status| status.tree.sojourn_s);
    let mean = (waited(last) - waited(first)).max(0.0) * 1e9 / transmitted.max(1) as f64;
    let micros = |figure: fn(&fairgate_run_api::Sojourn) -> f64| {
        last.map_or(0, |status| (figure(&status.sojourn).max(0.0) * 1e3) as u64)
    };
    let backlog = |figure: fn(&CountStatus) -> u64| -> Vec<u64> {
        let ends = times.intervals.iter().skip(1);
        ends.map(|&sample| at(sample).map_or(0, |status| figure(&status.tree.backlog)))
            .collect()
    };
    let rate_bps = rate_of_link.map(fairgate::Rate::bits_per_second);
    let drops = last.map(|status| status.tree.drops.clone()).unwrap_or_default();
    let before = first.map(|status| status.tree.drops.clone()).unwrap_or_default();
    InterfaceResults {
        name,
        discipline: last.map_or("none".to_owned(), |status| status.tree.discipline.clone()),
        rate_bps,
        enqueued: less(|status| status.tree.enqueued.packets),
        transmitted,
        transmitted_bytes: bytes,
        dropped: less(|status| status.tree.dropped.packets),
        dropped_by_reason: drops
            .into_iter()
            .map(|(reason, packets)| {
                let earlier = before.get(&reason).copied().unwrap_or(0);
                (reason, packets.saturating_sub(earlier))
            })
            .filter(|(_, packets)| *packets > 0)
            .collect(),
        marked: less(|status| status.tree.marked),
        lost: 0,
        utilisation: rate_bps
            .filter(|_| last.is_some())
            .map(|capacity| rate(bytes, elapsed) as f64 / capacity as f64),
        sojourn: Durations {
            count: transmitted,
            mean_ns: mean as u64,
            p50_ns: micros(|sojourn| sojourn.p50_us),
            p95_ns: micros(|sojourn| sojourn.p95_us),
            p99_ns: micros(|sojourn| sojourn.p99_us),
            max_ns: micros(|sojourn| sojourn.max_us),
            ..Durations::of_all([])
        },
        backlog_series_packets: backlog(|count| count.packets),
        backlog_series_bytes: backlog(|count| count.bytes),
        sojourn_series_ns: vec![0; times.intervals.len() - 1],
        classes: Vec::new(),
    }
}
