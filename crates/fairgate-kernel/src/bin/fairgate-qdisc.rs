//! `fairgate-qdisc`: configures the qdisc `fairgate` of the kernel, and prints its counters.
//!
//! It parses and checks a tree as every program of Fairgate does, and sends it in its compact form.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use fairgate::DropReason;
use fairgate_config::{Document, FileError, Problem, Spec};
use fairgate_kernel::convert::tree_of;
use fairgate_kernel::{DEFAULT_SLOTS, MOST_SLOTS, Plan};

const USAGE: &str = "\
usage: fairgate-qdisc add|change|replace PLACE TREE [--slots N] [--queue NAME]
       fairgate-qdisc del PLACE
       fairgate-qdisc show DEVICE
PLACE is DEVICE for its root, or DEVICE:MAJOR:MINOR for a class; :HANDLE may follow it. All are hexadecimal.
TREE is a line, 'tbf rate=20mbit burst=20kb / sqf', or @FILE: the queue of a TOML file, or its queue NAME.";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (flags, kind) = match *words.first().ok_or(USAGE)? {
        "add" => (libc::NLM_F_CREATE | libc::NLM_F_EXCL, libc::RTM_NEWQDISC),
        "replace" => (libc::NLM_F_CREATE | libc::NLM_F_REPLACE, libc::RTM_NEWQDISC),
        "change" => (0, libc::RTM_NEWQDISC),
        "del" => (0, libc::RTM_DELQDISC),
        "show" => return show(place(words.get(1).ok_or(USAGE)?)?),
        _ => return Err(USAGE.into()),
    };
    let mut message = Message::new(kind, flags | libc::NLM_F_ACK, place(words.get(1).ok_or(USAGE)?)?);
    let (mut tree, mut slots, mut queue) = (None, DEFAULT_SLOTS, None);
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("`{word}` needs a value"));
        match *word {
            "--slots" => slots = value()?.parse().map_err(|_| "`--slots` is a plain number")?,
            "--queue" => queue = Some(*value()?),
            _ if tree.is_none() => tree = Some(*word),
            _ => {
                return Err(format!("`{word}` follows the tree; write the tree as one word\n{USAGE}").into());
            }
        }
    }
    message.text(libc::TCA_KIND, "fairgate");
    if kind == libc::RTM_NEWQDISC {
        let text = tree.ok_or(USAGE)?;
        if !(1..=MOST_SLOTS).contains(&slots) {
            return Err(format!("`--slots` is {slots}, but must be 1 to {MOST_SLOTS}").into());
        }
        let spec = read_tree(text, queue)?;
        let plan = Plan {
            slots,
            cuts: !spec.takes_super_packets(),
            tree: tree_of(&spec)?,
        };
        let bytes = plan.to_bytes();
        let options = message.begin(libc::TCA_OPTIONS);
        message.bytes(PLAN, &bytes);
        message.text(TEXT, text);
        message.end(options)?;
    }
    message.ask()
}

/// Attributes in `TCA_OPTIONS`: `fairgate_netlink.h`.
const PLAN: u16 = 1;
const TEXT: u16 = 2;

/// Returns a line for each mistake: place, rule and remedy.
fn in_words(error: &FileError) -> String {
    let line = |problem: &Problem| {
        let (line, column) = problem.position();
        let Problem {
            message, label, help, ..
        } = problem;
        format!("{}:{line}:{column}: {message}: {label}; {help}", problem.file())
    };
    let lines: Vec<String> = error.problems().iter().map(line).collect();
    lines.join("\n       ")
}

fn read_tree(text: &str, queue: Option<&str>) -> Result<Spec> {
    let Some(path) = text.strip_prefix('@') else {
        return Ok(Spec::inline(text).map_err(|error| in_words(&error))?);
    };
    let content = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let document = Document::parse(path, &content).map_err(|error| in_words(&error))?;
    let names: Vec<&str> = document.queues().map(|(name, _)| name).collect();
    let name = match (queue, names.as_slice()) {
        (Some(name), _) => name,
        (None, [name]) => *name,
        _ => {
            return Err(format!(
                "{path} has the queues {}; name one: --queue NAME",
                names.join(", ")
            )
            .into());
        }
    };
    let found = document.queue(name).cloned();
    found.ok_or_else(|| format!("{path} has no queue `{name}`, only {}", names.join(", ")).into())
}

fn device(name: &str) -> Result<i32> {
    let text = CString::new(name)?;
    // SAFETY: the pointer is to a text that ends with a zero byte.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(format!("there is no interface `{name}`").into()),
        index => Ok(index as i32),
    }
}

/// Reads a place: the interface, the class above and the handle.
fn place(text: &str) -> Result<Tc> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| {
        u16::from_str_radix(part, 16).map_err(|_| format!("`{part}` in `{text}` is not a hexadecimal number"))
    };
    let (parent, handle) = match parts[1..] {
        [] => (ROOT, 0),
        [handle] => (ROOT, number(handle)?),
        [major, minor] => (u32::from(number(major)?) << 16 | u32::from(number(minor)?), 0),
        [major, minor, handle] => {
            let parent = u32::from(number(major)?) << 16 | u32::from(number(minor)?);
            (parent, number(handle)?)
        }
        _ => return Err(format!("`{text}` has too many parts\n{USAGE}").into()),
    };
    Ok(Tc {
        index: device(parts[0])?,
        handle: u32::from(handle) << 16,
        parent,
    })
}

/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;

/// `struct tcmsg`.
struct Tc {
    index: i32,
    handle: u32,
    parent: u32,
}

const HEADER: usize = 16;
const TC: usize = 20;

/// A request about qdiscs.
struct Message {
    kind: u16,
    flags: u16,
    tc: Tc,
    attributes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: i32, tc: Tc) -> Message {
        Message {
            kind,
            flags: (flags | libc::NLM_F_REQUEST) as u16,
            tc,
            attributes: Vec::new(),
        }
    }

    fn begin(&mut self, kind: u16) -> usize {
        let at = self.attributes.len();
        self.attributes.extend([0; 2]);
        self.attributes.extend(kind.to_ne_bytes());
        at
    }

    /// Ends an attribute: writes its length, and fills up to four bytes.
    fn end(&mut self, at: usize) -> Result<()> {
        let length = u16::try_from(self.attributes.len() - at)
            .map_err(|_| "the tree is too large for one message: 65,535 bytes")?;
        self.attributes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self.attributes
            .resize(self.attributes.len().next_multiple_of(4), 0);
        Ok(())
    }

    fn bytes(&mut self, kind: u16, bytes: &[u8]) {
        let at = self.begin(kind);
        self.attributes.extend(bytes);
        // A length that is too large is found when the attribute around it ends.
        let _ = self.end(at);
    }

    fn text(&mut self, kind: u16, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let length = (HEADER + TC + self.attributes.len()) as u32;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend(self.flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend([0; 4]);
        bytes.extend(self.tc.index.to_ne_bytes());
        bytes.extend(self.tc.handle.to_ne_bytes());
        bytes.extend(self.tc.parent.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.attributes);
        bytes
    }

    /// Sends the request, and waits for its acknowledgement.
    fn ask(&self) -> Result<()> {
        let socket = Socket::open()?;
        socket.send(&self.to_bytes())?;
        loop {
            for (kind, payload) in messages(&socket.receive()?) {
                if i32::from(kind) == libc::NLMSG_ERROR {
                    return acknowledged(payload);
                }
            }
        }
    }
}

/// Returns the kernel's error, in its own words if it has some.
fn acknowledged(payload: &[u8]) -> Result<()> {
    let code = i32::from_ne_bytes(word(payload, 0).ok_or("the kernel's answer is cut off")?);
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-code);
    // The text of the error follows the request, of which only the header may be there.
    let length = u32::from_ne_bytes(word(payload, 4).unwrap_or_default()) as usize;
    let texts = [4 + length.next_multiple_of(4), 4 + HEADER];
    let said = texts.into_iter().find_map(|from| {
        let mut found = attributes(payload.get(from..)?).filter(|(kind, _)| *kind == 1);
        Some(
            String::from_utf8_lossy(found.next()?.1)
                .trim_end_matches('\0')
                .to_owned(),
        )
    });
    Err(match said {
        Some(said) => format!("{said} ({error})"),
        None => error.to_string(),
    }
    .into())
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the kind and the payload of each message.
fn messages(bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    let mut left = bytes;
    while let (Some(length), Some(kind)) = (word(left, 0), word(left, 4)) {
        let length = u32::from_ne_bytes(length) as usize;
        let Some(payload) = left.get(HEADER..length) else {
            break;
        };
        found.push((u16::from_ne_bytes(kind), payload));
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Returns the kind and the payload of each attribute.
fn attributes(mut left: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(word(left, 0)?));
        // The two highest bits are flags.
        let kind = u16::from_ne_bytes(word(left, 2)?) & 0x3fff;
        let payload = left.get(4..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

struct Socket(OwnedFd);

impl Socket {
    fn open() -> io::Result<Socket> {
        // SAFETY: no pointers.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_ROUTE,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and nothing else owns it.
        let socket = Socket(unsafe { OwnedFd::from_raw_fd(fd) });
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let one: libc::c_int = 1;
            // SAFETY: the pointer is to an integer of this size. Old kernels refuse, and then say less.
            unsafe {
                libc::setsockopt(
                    fd,
                    libc::SOL_NETLINK,
                    option,
                    (&raw const one).cast(),
                    size_of_val(&one) as u32,
                );
            }
        }
        Ok(socket)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer is valid for the length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; 1 << 17];
        // SAFETY: the pointer is valid for the length.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        buffer.truncate(got as usize);
        Ok(buffer)
    }
}

/// Prints a line for each qdisc `fairgate` of the interface.
fn show(place: Tc) -> Result<()> {
    let index = place.index;
    let request = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, place);
    let socket = Socket::open()?;
    socket.send(&request.to_bytes())?;
    loop {
        for (kind, payload) in messages(&socket.receive()?) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(()),
                libc::NLMSG_ERROR => return acknowledged(payload),
                _ => {}
            }
            let at = word(payload, 4).map(i32::from_ne_bytes);
            let attributes: Vec<_> = payload.get(TC..).map(attributes).into_iter().flatten().collect();
            let find = |kind| {
                attributes
                    .iter()
                    .find(|(other, _)| *other == kind)
                    .map(|(_, payload)| *payload)
            };
            if at == Some(index) && find(libc::TCA_KIND) == Some(b"fairgate\0".as_slice()) {
                let handle = u32::from_ne_bytes(word(payload, 8).unwrap_or_default());
                let parent = u32::from_ne_bytes(word(payload, 12).unwrap_or_default());
                let text = find(libc::TCA_OPTIONS)
                    .and_then(|options| self::attributes(options).find(|(kind, _)| *kind == TEXT));
                let text = text.map_or_else(String::new, |(_, text)| {
                    String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()
                });
                println!(
                    "handle={:x}: parent={} tree=\"{}\"{}",
                    handle >> 16,
                    match parent {
                        ROOT => "root".to_owned(),
                        _ => format!("{:x}:{:x}", parent >> 16, parent & 0xffff),
                    },
                    text.escape_debug(),
                    find(STATS2)
                        .and_then(application)
                        .map_or_else(String::new, counters)
                );
            }
        }
    }
}

/// `TCA_STATS2`, and `TCA_STATS_APP` in it.
const STATS2: u16 = 7;
const STATS_APP: u16 = 4;

fn application(statistics: &[u8]) -> Option<&[u8]> {
    attributes(statistics)
        .find(|(kind, _)| *kind == STATS_APP)
        .map(|(_, payload)| payload)
}

/// Prints `struct fairgate_stats`.
fn counters(bytes: &[u8]) -> String {
    const REASONS: usize = 24;
    let number = |at: usize| word(bytes, 8 + 8 * at).map_or(0, u64::from_ne_bytes);
    let mut line = String::new();
    let mut put = |name: &str, value: u64| line.push_str(&format!(" {name}={value}"));
    if word(bytes, 0).map(u32::from_ne_bytes) != Some(1) {
        put("unknown_version", 1);
        return line;
    }
    for (place, name) in ["enqueued", "dequeued", "dropped", "flushed", "backlog"]
        .iter()
        .enumerate()
    {
        put(&format!("{name}_packets"), number(2 * place));
        put(&format!("{name}_bytes"), number(2 * place + 1));
    }
    for (place, name) in ["marked", "overlimits", "sojourn_ns"].iter().enumerate() {
        put(name, number(10 + place));
    }
    for (place, name) in ["refused", "refused_bytes", "cut", "passed"].iter().enumerate() {
        put(name, number(13 + REASONS + place));
    }
    put("panicked", word(bytes, 4).map_or(0, u32::from_ne_bytes).into());
    for (place, reason) in DropReason::ALL.iter().enumerate() {
        if number(13 + place) > 0 {
            put(&format!("drop_{}", reason.name()), number(13 + place));
        }
    }
    line
}
