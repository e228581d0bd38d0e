//! The journal of systemd, by its native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>): a datagram
//! for each entry, with a field in each line.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use anstream::adapter::strip_str;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use super::Entry;

/// Where the journal listens.
pub(super) const SOCKET: &str = "/run/systemd/journal/socket";

/// What all names of our fields begin with.
const PREFIX: &str = "FAIRGATE_";

/// A connection to the journal.
#[derive(Debug)]
pub(crate) struct Journal {
    socket: UnixDatagram,
    /// The name of the run, for each entry.
    run: String,
}

impl Journal {
    /// Connects to the journal.
    pub(super) fn open(run: &str) -> io::Result<Journal> {
        Ok(Journal {
            socket: connect()?,
            run: run.to_owned(),
        })
    }

    /// Writes an entry, if the journal runs.
    pub(super) fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let bytes = encoded(entry, &self.run);
        self.send(&bytes).or_else(|_| {
            // The journal may have been started anew.
            self.socket = connect()?;
            self.send(&bytes)
        })
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self.socket.send(bytes) {
            Err(error) if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) => self.send_file(bytes),
            result => result.map(drop),
        }
    }

    /// Sends an entry that is too long for a datagram, as a sealed file in memory.
    fn send_file(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC;
        let mut file = File::from(memfd_create(c"fairgate-entry", flags)?);
        file.write_all(bytes)?;
        let seals =
            SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let descriptors = [file.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let nothing = [IoSlice::new(&[])];
        sendmsg::<()>(
            self.socket.as_raw_fd(),
            &nothing,
            &rights,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        Ok(())
    }
}

fn connect() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SOCKET)?;
    Ok(socket)
}

/// Returns the fields of an entry. The journal takes no colours.
fn encoded(entry: &Entry, run: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |name: &str, value: &str| {
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    };
    field("MESSAGE", &strip_str(&entry.message).to_string());
    field("PRIORITY", &(entry.level as u8).to_string());
    field("SYSLOG_IDENTIFIER", "fairgate");
    field(&format!("{PREFIX}RUN"), run);
    for (name, value) in &entry.fields {
        field(&format!("{PREFIX}{name}"), value);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Level;

    #[test]
    fn a_value_of_several_lines_has_its_length_before_it() {
        let entry = Entry::new(Level::Error, "reload", "\x1b[31mno\x1b[0m\nthird").with("pause_us", 7);
        let expected = b"MESSAGE\n\x08\0\0\0\0\0\0\0no\nthird\nPRIORITY=3\nSYSLOG_IDENTIFIER=fairgate\n\
            FAIRGATE_RUN=home\nFAIRGATE_EVENT=reload\nFAIRGATE_PAUSE_US=7\n";
        assert_eq!(encoded(&entry, "home"), expected);
    }

    /// The journal gets what is longer than a datagram, too.
    #[test]
    fn an_entry_longer_than_a_datagram_is_sent_as_a_file() {
        use std::io::{Read, Seek};

        use nix::cmsg_space;
        use nix::sys::socket::{ControlMessageOwned, recvmsg};

        let (ours, theirs) = UnixDatagram::pair().expect("sockets");
        let journal = Journal {
            socket: ours,
            run: String::new(),
        };
        let bytes = vec![b'x'; 5_000_000];
        journal.send(&bytes).expect("the journal listens");
        let mut space = cmsg_space!([std::os::fd::RawFd; 1]);
        let received = recvmsg::<()>(theirs.as_raw_fd(), &mut [], Some(&mut space), MsgFlags::empty());
        let received = received.expect("a message");
        let message = received.cmsgs().expect("it fits").next();
        let Some(ControlMessageOwned::ScmRights(descriptors)) = message else {
            panic!("{message:?}");
        };
        let [descriptor] = descriptors[..] else {
            panic!("{descriptors:?}");
        };
        let mut file = File::options()
            .read(true)
            .open(format!("/proc/self/fd/{descriptor}"))
            .expect("the received file");
        let mut text = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut text))
            .expect("a file");
        assert!(text == bytes);
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS).expect("a file in memory");
        assert_eq!(SealFlag::from_bits_retain(seals).bits().count_ones(), 4);
        nix::unistd::close(descriptor).expect("the received descriptor");
    }
}
