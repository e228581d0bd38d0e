//! Client and server on the loopback interface: what is measured, and what is refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::tune::error::TuneError;
use crate::tune::far::Far;
use crate::tune::load::load;
use crate::tune::measure::{FramingSource, Settings, measure};
use crate::tune::measured::Direction;
use crate::tune::path;
use crate::tune::place::{Named, resolve};
use crate::tune::probes::{self, Answer, Latest};
use crate::tune::server::{Served, Server};
use crate::tune::session::Session;
use crate::tune::wire::{ASKED, PROBE, Probe, Request, What};

/// Long enough for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls `client` while a server answers at the address that it is given. Returns what the server has done.
fn with_server(client: impl FnOnce(SocketAddr)) -> Served {
    let server = Server::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(|| is_over.load(Ordering::Relaxed)).unwrap());
        // Also if an assertion of the client's fails, the server is to end.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        {
            let _end = End(&is_over);
            client(address);
        }
        serving.join().unwrap()
    })
}

fn named(address: SocketAddr) -> Named {
    resolve(&address.to_string()).unwrap()
}

/// Opens a measurement. The server may still end the one before.
fn open(address: SocketAddr) -> Session {
    loop {
        match Session::open(&named(address)) {
            Err(TuneError::Busy(_)) => thread::sleep(Duration::from_millis(10)),
            other => return other.unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

#[test]
fn a_load_and_probes_are_counted() {
    let served = with_server(|address| {
        let session = open(address);
        let mtu = path::mtu(&session).unwrap().unwrap();
        assert!(mtu >= 1500, "{mtu}");
        let mut left = 20;
        let latest = Latest::default();
        let probed = probes::send(&session, &latest, || {
            left -= 1;
            (left >= 0).then_some((Duration::from_millis(5), 300))
        });
        let probed = probed.unwrap();
        assert_eq!(probed.len(), 20);
        assert!(probed.iter().all(|probe| probe.length == 328));
        let answers: Vec<_> = probed.iter().filter_map(|probe| probe.answer).collect();
        assert_eq!(answers.len(), 20);
        let count = |answer: &Answer| match answer {
            Answer::OneWay { count, .. } => *count,
            Answer::RoundTrip(_) => panic!("no time of the server's"),
        };
        assert!(answers.windows(2).all(|pair| count(&pair[0]) < count(&pair[1])));
        assert!(answers.iter().all(|answer| answer.round_trip() > 0));
        assert!(latest.excess().is_some());
        for way in [Direction::Down, Direction::Up] {
            let loaded = load(&session, way, 2, Duration::from_millis(600), &|| false).unwrap();
            assert!(loaded.bytes.iter().sum::<u64>() > 100_000, "{way:?}: {loaded:?}");
            assert!(loaded.bytes.len() <= 12, "{loaded:?}");
            assert!(!loaded.own.is_empty() && !loaded.opened.is_empty(), "{loaded:?}");
            assert_eq!(loaded.opened.len(), loaded.answered.len());
        }
    });
    assert_eq!(
        served,
        Served {
            measurements: 1,
            refused: 0
        }
    );
}

#[test]
fn one_measurement_at_a_time() {
    let served = with_server(|address| {
        let first = open(address);
        assert!(matches!(Session::open(&named(address)), Err(TuneError::Busy(_))));
        drop(first);
        open(address);
    });
    assert_eq!(served.measurements, 2);
    assert!(served.refused >= 1);
}

/// Whoever has not opened a measurement by TCP gets no datagram, whatever he sends.
#[test]
fn probes_are_answered_only_with_the_token_and_never_longer() {
    with_server(|address| {
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.connect(address).unwrap();
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        let send = |token, answer, length: usize| {
            let mut datagram = vec![0; length];
            let probe = Probe {
                token,
                answer,
                ..Probe::default()
            };
            probe.write(&mut datagram);
            stranger.send(&datagram).unwrap();
        };
        // No measurement is open.
        send([0; 16], 9000, 100);
        let session = open(address);
        send([0; 16], 9000, 100);
        stranger.send(&[0; 100]).unwrap();
        stranger.send(b"fgtune 1").unwrap();
        // The first answer is that of the first probe with the token. Datagrams on the loopback interface
        // keep their order.
        for (wanted, sent, answered) in [(9000, 100, 100), (0, 500, PROBE), (200, 500, 200)] {
            send(session.token, wanted, sent);
            let mut answer = [0; 10_000];
            assert_eq!(stranger.recv(&mut answer).unwrap(), answered);
            assert_eq!(Probe::read(&answer).unwrap().token, session.token);
        }
    });
}

#[test]
fn connections_without_a_token_are_closed() {
    let served = with_server(|address| {
        let session = open(address);
        let refused = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes).unwrap();
            let mut answer = Vec::new();
            // It may be closed with an error, because not all was read.
            let _ = stream.read_to_end(&mut answer);
            assert_eq!(answer, b"", "{bytes:?}");
        };
        refused(b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n");
        for what in [What::Up, What::Down(1000), What::Ask] {
            let token = [7; 16];
            refused(&Request { what, token }.bytes());
        }
        let mut asked = session.connect(What::Ask).unwrap();
        let mut answer = Vec::new();
        asked.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, ASKED);
    });
    assert_eq!(served.refused, 4);
}

/// A server that is none, or a hostile one: what it answers is an error, and nothing is awaited for ever.
#[test]
fn a_stranger_is_no_server() {
    for answer in [
        &b"SSH-2.0-OpenSSH_9.2\r\n 0123456789 0123456789"[..],
        b"",
        &[0xff; 64],
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(answer).unwrap();
            });
            let opened = Session::open(&named(address));
            assert!(matches!(opened, Err(TuneError::Stranger { .. })));
        });
    }
}

/// What netserver does: a message of 656 bytes on the control connection is answered with the port of the
/// data, which is sent or taken until the client closes it.
fn serve_netperf(mut control: TcpStream) {
    let mut request = [0; 656];
    if control.read_exact(&mut request).is_err() {
        // A connection that only times the line.
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let kind = u32::from_be_bytes(request[..4].try_into().unwrap());
    let mut answer = [0; 656];
    answer[..4].copy_from_slice(&(kind + 1).to_be_bytes());
    let port = u32::from(listener.local_addr().unwrap().port());
    answer[32..36].copy_from_slice(&port.to_be_bytes());
    control.write_all(&answer).unwrap();
    let (mut data, _) = listener.accept().unwrap();
    let mut bytes = [0; 1 << 14];
    match kind {
        10 => while data.read(&mut bytes).is_ok_and(|count| count > 0) {},
        94 => while data.write(&bytes).is_ok() {},
        kind => panic!("{kind}"),
    }
}

#[test]
fn a_netserver_fills_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for control in listener.incoming() {
            thread::spawn(|| serve_netperf(control.unwrap()));
        }
    });
    let far = Far::open(&resolve(&format!("netperf://{address}")).unwrap()).unwrap();
    let settings = Settings {
        connections: 2,
        load: Duration::from_secs(3),
        framing: FramingSource::Delays,
    };
    let measured = measure(&far, settings, &|_| {}, &|| false).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(measured.server, format!("netperf://{address}"));
    assert_eq!(
        (measured.mtu, measured.one_way, measured.congestion_down),
        (None, false, None)
    );
    let missing: Vec<&str> = measured.not_measured.iter().map(|missing| missing.key).collect();
    assert_eq!(missing, ["mtu", "framing", "rpm"]);
    for direction in [&measured.down, &measured.up] {
        assert!(direction.capacity_bps > 1e6, "{direction:?}");
        assert_eq!(
            (direction.framing, direction.rpm, direction.loss_idle),
            (None, None, 0.0)
        );
    }
    assert!(
        (0.0..50.0).contains(&measured.round_trip_ms.p50),
        "{:?}",
        measured.round_trip_ms
    );
}

/// Who answers as no server of iperf3 or netperf does is named, and nothing is awaited for ever.
#[test]
fn a_stranger_is_no_server_of_iperf3_or_netperf() {
    for kind in ["iperf3", "netperf"] {
        for answer in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", &[0; 700]] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    // Who only times the line may have gone.
                    let _ = stream.unwrap().write_all(answer);
                }
            });
            let settings = Settings {
                connections: 1,
                load: Duration::from_secs(3),
                framing: FramingSource::Delays,
            };
            let named = resolve(&format!("{kind}://{address}")).unwrap();
            let measured = Far::open(&named).and_then(|far| measure(&far, settings, &|_| {}, &|| false));
            assert!(
                matches!(measured, Err(TuneError::Stranger { .. })),
                "{kind}: {measured:?}"
            );
        }
    }
}
