//! The control connection of an iperf3 server: `iperf3 -s`, from version 3.0 on.
//!
//! A test begins with a cookie, which all its connections send. The server then leads: each of its messages
//! is a state, one byte. Parameters and results are JSON behind their length. This machine's kernel counts,
//! so all that matters of the results is the congestion control.

use std::io::{self, Read, Write};

use serde_json::{Value, json};

use crate::tune::foreign::stop::Stop;

/// A cookie: 36 letters and a zero.
pub(super) const COOKIE: usize = 37;

/// The longest name of a congestion control (`TCP_CA_NAME_MAX`).
const LONGEST_NAME: usize = 16;
/// The most bytes of results. Those of 32 connections are 8 kB.
const MOST_RESULTS: u32 = 1 << 18;

/// The states that we send or wait for (`iperf_api.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(super) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfDone = 16,
    AccessDenied = -1,
    ServerError = -2,
}

/// What a test is to do.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) connections: u32,
    /// Seconds. The server ends it some time after them if we do not.
    pub(super) seconds: u64,
    /// The server sends.
    pub(super) is_reverse: bool,
    /// The congestion control of the server's sockets. `None` leaves it to the server.
    pub(super) congestion: Option<String>,
}

impl Test {
    /// Returns the parameters of the test. What is there at all counts as true, also in old servers.
    fn parameters(&self) -> Value {
        let mut parameters = json!({
            "tcp": true,
            "omit": 0,
            "time": self.seconds,
            "parallel": self.connections,
            "len": 1 << 17,
        });
        if self.is_reverse {
            parameters["reverse"] = true.into();
        }
        if let Some(congestion) = &self.congestion {
            parameters["congestion"] = congestion.as_str().into();
        }
        parameters
    }
}

/// Returns a cookie, of the letters that iperf3 uses.
pub(super) fn cookie() -> io::Result<[u8; COOKIE]> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut cookie[..COOKIE - 1])?;
    for byte in &mut cookie[..COOKIE - 1] {
        *byte = LETTERS[usize::from(*byte) % LETTERS.len()];
    }
    Ok(cookie)
}

/// Opens a test. The server waits for its parameters then.
pub(super) fn open(mut control: impl Read + Write, cookie: &[u8; COOKIE]) -> Result<(), Stop> {
    control.write_all(cookie)?;
    await_state(&mut control, State::ParamExchange)
}

/// Sends the parameters. The server waits for the connections of the test then.
pub(super) fn prepare(mut control: impl Read + Write, test: &Test) -> Result<(), Stop> {
    send(&mut control, &test.parameters())?;
    await_state(&mut control, State::CreateStreams)
}

/// Waits until the server has all connections. The test runs then.
pub(super) fn start(mut control: impl Read + Write) -> Result<(), Stop> {
    await_state(&mut control, State::TestStart)?;
    await_state(&mut control, State::TestRunning)
}

/// Ends a test as the server expects it. It is free for the next one then. Returns the congestion control
/// that its connections had, if it says so: from version 3.2 on.
pub(super) fn end(mut control: impl Read + Write) -> Result<Option<String>, Stop> {
    tell(&mut control, State::TestEnd)?;
    await_state(&mut control, State::ExchangeResults)?;
    let results = json!({
        "cpu_util_total": 0,
        "cpu_util_user": 0,
        "cpu_util_system": 0,
        "sender_has_retransmits": -1,
        "streams": [],
    });
    send(&mut control, &results)?;
    let results = receive(&mut control)?;
    await_state(&mut control, State::DisplayResults)?;
    tell(&mut control, State::IperfDone)?;
    let congestion = results.get("congestion_used").and_then(Value::as_str);
    let congestion = congestion.filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    Ok(congestion.map(str::to_owned))
}

/// Gives a test up.
pub(super) fn give_up(mut control: impl Write) -> io::Result<()> {
    tell(&mut control, State::ClientTerminate)
}

/// Runs the control connection of a whole test at once.
pub(super) fn converse(
    mut control: impl Read + Write,
    cookie: &[u8; COOKIE],
    test: &Test,
) -> Result<Option<String>, Stop> {
    open(&mut control, cookie)?;
    prepare(&mut control, test)?;
    start(&mut control)?;
    end(&mut control)
}

fn tell(control: &mut impl Write, state: State) -> io::Result<()> {
    control.write_all(&[state as i8 as u8])
}

fn await_state(control: &mut impl Read, wanted: State) -> Result<(), Stop> {
    let mut byte = [0];
    control.read_exact(&mut byte)?;
    match byte[0].cast_signed() {
        state if state == wanted as i8 => Ok(()),
        state if state == State::AccessDenied as i8 => Err(Stop::Busy),
        state if state == State::ServerTerminate as i8 => Err(Stop::Refused("it was ended".to_owned())),
        state if state == State::ServerError as i8 => {
            // Its own number of the error, and that of the system.
            let mut numbers = [0; 8];
            control.read_exact(&mut numbers)?;
            let number = u32::from_be_bytes(std::array::from_fn(|byte| numbers[byte]));
            Err(Stop::Refused(describe(number)))
        }
        _ => Err(Stop::Stranger),
    }
}

/// Describes an error of the server's: those that a healthy server answers with (`iperf_api.h`).
fn describe(number: u32) -> String {
    match number {
        6 => "it takes fewer connections".to_owned(),
        27 => "its limit of the rate (`--server-bitrate-limit`) is below the line's".to_owned(),
        37 | 160 => "a `--load` is longer than it allows (`--server-max-duration`)".to_owned(),
        142 => "it asks for a user name and a password".to_owned(),
        number => format!("error {number} of iperf3"),
    }
}

fn send(control: &mut impl Write, document: &Value) -> io::Result<()> {
    let text = document.to_string();
    let mut message = (text.len() as u32).to_be_bytes().to_vec();
    message.extend(text.bytes());
    control.write_all(&message)
}

fn receive(control: &mut impl Read) -> Result<Value, Stop> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MOST_RESULTS {
        return Err(Stop::Stranger);
    }
    let mut text = vec![0; length as usize];
    control.read_exact(&mut text)?;
    serde_json::from_slice(&text).map_err(|_| Stop::Stranger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::foreign::answers::Answers;

    /// The results that servers of two versions have sent; the ends of lines are ours.
    const RESULTS_3_0_9: &str = r#"{"cpu_util_total":0.500576,"cpu_util_user":0,"cpu_util_system":0.499541,
"sender_has_retransmits":1,"streams":[{"id":1,"bytes":3932160,"retransmits":1,"jitter":0,"errors":0,
"packets":0}]}"#;
    const RESULTS_3_21: &str = r#"{"cpu_util_total":0.36053490996614368,"cpu_util_user":0,
"cpu_util_system":0.36053490996614368,"sender_has_retransmits":1,"congestion_used":"reno",
"streams":[{"id":1,"bytes":3932160,"retransmits":1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,
"omitted_packets":0,"start_time":0,"end_time":0.20024}]}"#;

    /// What a server says in a whole test with these results.
    fn whole(results: &str) -> Vec<u8> {
        let mut said = vec![9, 10, 1, 2, 13];
        said.extend((results.len() as u32).to_be_bytes());
        said.extend(results.bytes());
        said.push(14);
        said
    }

    /// Runs a whole test. Returns what came of it, and what was said.
    fn converse(server: &[u8]) -> (Result<Option<String>, Stop>, Vec<u8>) {
        let test = Test {
            connections: 3,
            seconds: 8,
            is_reverse: true,
            congestion: Some("reno".to_owned()),
        };
        let mut server = Answers::of(server);
        let outcome = super::converse(&mut server, &[b'a'; COOKIE], &test);
        (outcome, server.told)
    }

    #[test]
    fn a_test_is_run_as_servers_expect() {
        for (results, congestion) in [(RESULTS_3_0_9, None), (RESULTS_3_21, Some("reno"))] {
            let (outcome, told) = converse(&whole(results));
            assert_eq!(outcome.unwrap().as_deref(), congestion);
            let (cookie, rest) = told.split_at(COOKIE);
            assert_eq!(cookie, [b'a'; COOKIE]);
            let length = usize::from(rest[2]) * 256 + usize::from(rest[3]);
            let parameters: Value = serde_json::from_slice(&rest[4..4 + length]).unwrap();
            assert_eq!(parameters["parallel"], 3);
            assert_eq!(
                (&parameters["reverse"], &parameters["congestion"]),
                (&true.into(), &"reno".into())
            );
            assert_eq!(rest[4 + length], State::TestEnd as u8);
            assert_eq!(rest.last(), Some(&(State::IperfDone as u8)));
        }
    }

    #[test]
    fn servers_that_refuse_are_told_apart() {
        let of = |server: &[u8]| converse(server).0.unwrap_err();
        assert!(matches!(of(b"\xff"), Stop::Busy));
        // From a server with --server-max-duration.
        let Stop::Refused(reason) = of(b"\x09\xfe\0\0\0%\0\0\0\0") else {
            panic!("a server that refuses");
        };
        assert!(reason.contains("--server-max-duration"), "{reason}");
        assert!(matches!(of(b"\x09\x0a\x0b"), Stop::Refused(_)));
        assert!(matches!(of(b"SSH-2.0-OpenSSH_9.2"), Stop::Stranger));
        assert!(matches!(of(b""), Stop::Broken(_)));
        // No results are that long, and no congestion control.
        assert!(matches!(
            of(b"\x09\x0a\x01\x02\x0d\xff\xff\xff\xff{}"),
            Stop::Stranger
        ));
        let long = whole(r#"{"congestion_used": "an unbelievable name"}"#);
        assert_eq!(converse(&long).0.unwrap(), None);
    }

    #[test]
    fn cookies_are_letters_and_a_zero() {
        let cookie = cookie().unwrap();
        assert!(cookie[..COOKIE - 1].iter().all(u8::is_ascii_alphanumeric));
        assert_eq!(cookie[COOKIE - 1], 0);
        assert_ne!(cookie, super::cookie().unwrap());
    }
}
