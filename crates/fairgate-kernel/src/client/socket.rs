//! A socket of netlink.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::vec;
use std::vec::Vec;

use super::failed::Failed;
use super::message::{HEADER, Message, attribute, messages, text, word};

/// What takes the kind and the payload of an answer.
pub type Take<'t> = dyn FnMut(u16, &[u8]) -> Result<(), Failed> + 't;

/// A socket, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// The bytes that are read at once. An acknowledgement of an error repeats the request, which has at most 64
/// KiB.
const ANSWER: usize = 1 << 17;

impl Socket {
    /// Opens a socket of this protocol: `NETLINK_ROUTE`, `NETLINK_GENERIC`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open(protocol: i32) -> io::Result<Socket> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let one: libc::c_int = 1;
            // SAFETY: the pointer is to an integer of this size. Old kernels refuse, and then say less.
            unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const one).cast(),
                    size_of_val(&one) as u32,
                );
            }
        }
        Ok(Socket {
            fd,
            sequence: 0,
            buffer: vec![0; ANSWER],
        })
    }

    /// Sends a request that wants to be acknowledged, and waits until it is.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn ask(&mut self, mut message: Message) -> Result<(), Failed> {
        message.add_flags(libc::NLM_F_ACK);
        self.exchange(message, &mut |_, _| Ok(()))
    }

    /// Sends a request, and calls `take` with the kind and the payload of each answer.
    ///
    /// # Errors
    /// If the kernel refuses, or with an error of `take`.
    pub fn dump(&mut self, mut message: Message, take: &mut Take<'_>) -> Result<(), Failed> {
        message.add_flags(libc::NLM_F_DUMP);
        self.exchange(message, take)
    }

    /// Sends a request for one thing, and calls `take` with it.
    ///
    /// # Errors
    /// If the kernel refuses, or with an error of `take`.
    pub fn find(&mut self, mut message: Message, take: &mut Take<'_>) -> Result<(), Failed> {
        // The acknowledgement comes behind the answer.
        message.add_flags(libc::NLM_F_ACK);
        self.exchange(message, take)
    }

    fn exchange(&mut self, message: Message, take: &mut Take<'_>) -> Result<(), Failed> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&message.finished(self.sequence)?)?;
        let mut result = Ok(());
        loop {
            let length = self.receive()?;
            for (kind, sequence, payload) in messages(&self.buffer[..length]) {
                // The rest of an answer that was not read to its end.
                if sequence != self.sequence {
                    continue;
                }
                match i32::from(kind) {
                    libc::NLMSG_ERROR => return acknowledged(payload).and(result),
                    // It has the error that has ended it, in newer kernels also in words.
                    libc::NLMSG_DONE => return done(payload).and(result),
                    _ if result.is_ok() => result = take(kind, payload),
                    _ => {}
                }
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer is valid for the length.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        match sent < 0 {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        loop {
            let (room, flags) = (self.buffer.len(), 0);
            // SAFETY: the pointer is valid for the length.
            let got = unsafe {
                let into = self.buffer.as_mut_ptr().cast();
                libc::recv(self.fd.as_raw_fd(), into, room, flags)
            };
            match usize::try_from(got) {
                Ok(length) => return Ok(length),
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }
}

fn done(payload: &[u8]) -> Result<(), Failed> {
    match word(payload, 0).map(i32::from_ne_bytes) {
        None | Some(0..) => Ok(()),
        Some(code) => Err(failed(code, &[payload.get(4..).unwrap_or_default()])),
    }
}

/// Returns the kernel's error, in its own words if it has some.
fn acknowledged(payload: &[u8]) -> Result<(), Failed> {
    let code = word(payload, 0).map(i32::from_ne_bytes);
    let code = code.ok_or_else(|| Failed::damaged("an acknowledgement is cut off"))?;
    if code == 0 {
        return Ok(());
    }
    // What it says of the error follows the request, of which only the header may be there.
    let length = u32::from_ne_bytes(word(payload, 4).unwrap_or_default()) as usize;
    let behind = [4 + length.next_multiple_of(4), 4 + HEADER];
    Err(failed(
        code,
        &behind.map(|from| payload.get(from..).unwrap_or_default()),
    ))
}

/// `NLMSGERR_ATTR_MSG`, `NLMSGERR_ATTR_OFFS`.
const MESSAGE: u16 = 1;
const OFFSET: u16 = 2;

/// Returns an error with what the first attributes say that say something.
fn failed(code: i32, attributes: &[&[u8]]) -> Failed {
    let find = |kind| attributes.iter().find_map(|bytes| attribute(bytes, kind));
    Failed {
        errno: code.saturating_neg(),
        said: find(MESSAGE).map(text),
        place: find(OFFSET)
            .and_then(|offset| word(offset, 0))
            .map(u32::from_ne_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux 6.12 answers: the code, the header of the request, and the text.
    #[test]
    fn the_kernel_says_why() {
        let mut payload = (-libc::EINVAL).to_ne_bytes().to_vec();
        payload.extend(36u32.to_ne_bytes());
        payload.extend([0; 12]);
        let mut said = Message::new(0, 0, &[]);
        said.text(MESSAGE, "it needs classes");
        said.number(OFFSET, 61);
        payload.extend(&said.finished(0).unwrap()[HEADER..]);
        let failed = acknowledged(&payload).unwrap_err();
        assert_eq!(failed.errno, libc::EINVAL);
        assert_eq!(failed.said.as_deref(), Some("it needs classes"));
        assert_eq!(failed.place, Some(61));
        assert!(acknowledged(&payload[..3]).is_err());
        for end in 4..payload.len() {
            assert_eq!(acknowledged(&payload[..end]).unwrap_err().errno, libc::EINVAL);
        }
        assert_eq!(acknowledged(&0i32.to_ne_bytes()), Ok(()));
        assert_eq!(done(&[]), Ok(()));
        assert_eq!(
            done(&(-libc::EAGAIN).to_ne_bytes()).unwrap_err().errno,
            libc::EAGAIN
        );
    }
}
