//! A run: the network, the bridges, the flows, and samples at the ends of intervals.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::testbed::{Awake, Interrupt, Namespace};
use fairgate_sim::{Draws, Results, Scenario, Tcp, Traffic};

use crate::lab::bridges::Bridges;
use crate::lab::connections::Exchange;
use crate::lab::copies::{Copy, copies};
use crate::lab::datagrams::{self, Sender};
use crate::lab::error::LabError;
use crate::lab::layout::{KernelQueue, Layout, jitter};
use crate::lab::machine::{Machine, Ticks};
use crate::lab::network::Network;
use crate::lab::results;
use crate::lab::samples::{Over, Sample, Zero, times};
use crate::lab::sockets::{self, Endpoint, Settings};

/// From the start of the bridges to the beginning of the run.
const LEAD: Duration = Duration::from_millis(200);
/// After the end of the run, for packets that are still on their way.
const DRAIN: Duration = Duration::from_millis(300);
/// What a live run needs besides its scenario.
#[derive(Debug)]
pub struct Lab<'a> {
    /// Ends the run when the process is asked to end.
    pub interrupt: &'a Interrupt,
    /// Queues that the kernel runs in the place of the scenario's.
    pub kernel: &'a [KernelQueue],
}

/// What a live run gave.
#[derive(Clone, Debug)]
pub struct Live {
    /// The same figures as of a simulation.
    pub results: Results,
    /// How busy the machine was.
    pub machine: Machine,
}

impl Lab<'_> {
    /// Runs a scenario live. `progress` is called from time to time with the share that is done. The network
    /// is taken down in any case.
    ///
    /// # Errors
    /// Fails if the scenario cannot be expressed, if privileges are missing, if something fails, or if the
    /// process is asked to end.
    pub fn run(&self, scenario: &Scenario, progress: &dyn Fn(f64)) -> Result<Live, LabError> {
        let layout = Layout::of(scenario, self.kernel)?;
        let _busy = self.interrupt.busy();
        // If the kernel refuses, the figures of the machine say how late threads were.
        let _awake = Awake::keep();
        let network = Network::build(&layout, self.interrupt)?;
        let copies = copies(scenario);
        let listeners = listeners(&copies, &network)?;
        let over = Over::default();
        let failure: Mutex<Option<LabError>> = Mutex::new(None);
        let samples = thread::scope(|scope| {
            // Dropped first on any way out, so that all threads end and the scope can.
            let bridges = Bridges::start(scope, &layout, &network, scenario.seed, self.interrupt)?;
            let _end = EndOfRun(&over);
            let zero = Zero::after(LEAD);
            for copy in &copies {
                let (sender, receiver) = (
                    &network.hosts[copy.flow.source.index()],
                    &network.hosts[copy.flow.destination.index()],
                );
                let (over, failure) = (&over, &failure);
                let report = move |result: Result<(), LabError>| {
                    if let Err(error) = result {
                        failure
                            .lock()
                            .expect("no thread panics with it")
                            .get_or_insert(error);
                    }
                };
                match &copy.flow.traffic {
                    Traffic::Tcp(tcp) => {
                        let listeners = &listeners;
                        scope.spawn(move || {
                            let ends = [sender, receiver];
                            report(connection(scenario, copy, tcp, ends, listeners, zero, over));
                        });
                    }
                    _ => {
                        let [own, other] = copy.ends;
                        let dscp = copy.flow.dscp;
                        let source = sender
                            .enter(|| sockets::datagrams(own, other, dscp))?
                            .map_err(copy.error("opening a socket"))?;
                        let sink = receiver
                            .enter(|| sockets::datagrams(other, own, dscp))?
                            .map_err(copy.error("opening a socket"))?;
                        let answers = matches!(copy.flow.traffic, Traffic::Ping(_));
                        scope.spawn(move || {
                            let received = datagrams::receive(&sink, answers, zero, &copy.notes, over);
                            report(received.map_err(copy.error("receiving")));
                        });
                        let sender = Sender {
                            socket: source,
                            emissions: scenario
                                .emissions(copy.flow, &copy.name)
                                .expect("this is no connection"),
                            jitter: jitter(scenario, copy.flow)
                                .map(|jitter| (jitter, Draws::new(scenario.seed, "jitter", &copy.name))),
                            zero,
                            start: copy.start,
                            stop: copy.stop,
                        };
                        scope.spawn(move || {
                            let sent = sender.run(&copy.notes, over);
                            report(sent.map_err(copy.error("sending")));
                        });
                    }
                }
            }
            let samples = self.sample(scenario, &copies, &bridges, zero, &failure, progress)?;
            self.interrupt.sleep(DRAIN)?;
            for status in bridges.statuses()?.iter().flatten() {
                status.check()?;
            }
            Ok::<Vec<Sample>, LabError>(samples)
        })?;
        if let Some(error) = failure.into_inner().expect("no thread panics with it") {
            return Err(error);
        }
        let machine = machine(scenario, &samples, &copies);
        Ok(Live {
            results: results::of(scenario, &layout, &copies, &samples),
            machine,
        })
    }

    /// Takes samples at the ends of intervals and of the measurement window.
    fn sample(
        &self,
        scenario: &Scenario,
        copies: &[Copy<'_>],
        bridges: &Bridges,
        zero: Zero,
        failure: &Mutex<Option<LabError>>,
        progress: &dyn Fn(f64),
    ) -> Result<Vec<Sample>, LabError> {
        let mut samples = Vec::new();
        for at in times(scenario) {
            let due = zero.instant + at;
            while let left = due.saturating_duration_since(Instant::now())
                && !left.is_zero()
            {
                self.interrupt.sleep(left.min(Duration::from_millis(50)))?;
                if let Some(error) = failure.lock().expect("no thread panics with it").take() {
                    return Err(error);
                }
            }
            let now = Instant::now();
            samples.push(Sample {
                at: now.saturating_duration_since(zero.instant).as_nanos() as u64,
                connections: copies.iter().map(|copy| copy.notes.figures()).collect(),
                links: bridges.statuses()?,
                ticks: Ticks::now(),
            });
            progress(at.as_secs_f64() / scenario.duration.as_secs_f64());
        }
        Ok(samples)
    }
}

/// Ends all threads of a run on drop.
struct EndOfRun<'a>(&'a Over);

impl Drop for EndOfRun<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Returns the settings of a copy's connection.
fn settings(copy: &Copy<'_>, tcp: &Tcp) -> Settings {
    let config = &tcp.config;
    // A fixed buffer of the scenario offers half of it minus one segment.
    let is_fixed = config.receive_buffer == config.receive_buffer_max;
    Settings {
        congestion: config.congestion_control.name(),
        window: is_fixed.then(|| {
            (config.receive_buffer / 2)
                .saturating_sub(config.mss)
                .max(config.mss)
        }),
        dscp: copy.flow.dscp,
    }
}

/// A socket that listens, for all flows to its place, and the connections that nobody has taken yet.
struct Listener {
    socket: TcpListener,
    /// By the port of the end that has opened it.
    accepted: Mutex<BTreeMap<u16, TcpStream>>,
}

impl Listener {
    /// Returns the connection that was opened from a port, if it has arrived.
    fn take(&self, port: u16) -> std::io::Result<Option<TcpStream>> {
        let mut accepted = self.accepted.lock().expect("no thread panics with it");
        loop {
            match self.socket.accept() {
                Ok((stream, from)) => accepted.insert(from.port(), stream),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
        }
        Ok(accepted.remove(&port))
    }
}

type Listeners = BTreeMap<Endpoint, Listener>;

/// Opens a listening socket for each place that connections are opened to.
fn listeners(copies: &[Copy<'_>], network: &Network) -> Result<Listeners, LabError> {
    let mut listeners = Listeners::new();
    for copy in copies {
        let Traffic::Tcp(tcp) = &copy.flow.traffic else {
            continue;
        };
        let listening = usize::from(!copy.is_opened_by_receiver());
        let (place, settings) = (copy.ends[listening], settings(copy, tcp));
        if listeners.contains_key(&place) {
            continue;
        }
        let nodes = [copy.flow.source, copy.flow.destination];
        let socket = network.hosts[nodes[listening].index()]
            .enter(|| sockets::listener(place, &settings))?
            .map_err(copy.error("listening"))?;
        let accepted = Mutex::default();
        listeners.insert(place, Listener { socket, accepted });
    }
    Ok(listeners)
}

/// Opens a copy's connection at its start, and runs its program.
fn connection(
    scenario: &Scenario,
    copy: &Copy<'_>,
    tcp: &Tcp,
    ends: [&Namespace; 2],
    listeners: &Listeners,
    zero: Zero,
    over: &Over,
) -> Result<(), LabError> {
    if !over.sleep_until(zero.instant + copy.start) {
        return Ok(());
    }
    let opening = usize::from(copy.is_opened_by_receiver());
    let settings = settings(copy, tcp);
    let (own, other) = (copy.ends[opening], copy.ends[1 - opening]);
    let opened = ends[opening]
        .enter(|| sockets::connect(own, other, &settings, &|| over.is_set()))?
        .map_err(copy.error("connecting"))?;
    let Some(opened) = opened else { return Ok(()) };
    let accepted = loop {
        if let Some(stream) = listeners[&other]
            .take(own.port)
            .map_err(copy.error("accepting"))?
        {
            break stream;
        }
        if over.is_set() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    };
    accepted.set_nonblocking(false).map_err(copy.error("accepting"))?;
    let mut both = [opened, accepted];
    if opening == 1 {
        both.swap(0, 1);
    }
    Exchange::prepare(&both).map_err(copy.error("preparing a connection"))?;
    let clones = both.each_ref().map(|end| end.try_clone());
    let [Ok(sender), Ok(receiver)] = clones else {
        return Err(copy.error("sharing a connection")(std::io::Error::last_os_error()));
    };
    *copy.notes.connection.lock().expect("no thread panics with it") = Some([sender, receiver]);
    let exchange = Exchange {
        application: &tcp.application,
        draws: Draws::new(scenario.seed, "program", &copy.name),
        zero,
        start: copy.start,
        stop: copy.stop,
        notes: &copy.notes,
        over,
    };
    let [sender, receiver] = &both;
    let done = exchange.run(sender, receiver).map_err(copy.error("sending"));
    let ended = zero.instant.elapsed().as_nanos() as u64;
    if !over.is_set() {
        *copy.notes.ended.lock().expect("no thread panics with it") = Some(ended);
    }
    done
}

/// Returns how busy the machine was in the measurement window.
fn machine(scenario: &Scenario, samples: &[Sample], copies: &[Copy<'_>]) -> Machine {
    let at = |time: Duration| {
        let found = samples.iter().find(|sample| sample.at >= time.as_nanos() as u64);
        found.or(samples.last())
    };
    let (Some(first), Some(last)) = (at(scenario.measure.start), at(scenario.measure.end)) else {
        return Machine::default();
    };
    let sum = |sample: &Sample, figure: fn(&fairgate_run_api::Status) -> u64| -> u64 {
        sample.links.iter().flatten().map(figure).sum()
    };
    let between =
        |figure: fn(&fairgate_run_api::Status) -> u64| sum(last, figure).saturating_sub(sum(first, figure));
    Machine {
        idle: first.ticks.idle_until(last.ticks),
        late_wake_ups: between(|status| status.processor.late_wake_ups),
        stalls: between(|status| status.processor.stalls),
        late_datagrams: copies
            .iter()
            .map(|copy| *copy.notes.late.lock().expect("no thread panics with it"))
            .sum(),
    }
}
