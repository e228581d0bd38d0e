//! Messages of netlink(7), and their attributes.

use std::string::String;
use std::vec::Vec;

use super::failed::Failed;

/// The length of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

/// A request that is being written.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Message {
    /// Begins a request of this kind, with the structure that its protocol puts before the attributes.
    pub fn new(kind: u16, flags: i32, before: &[u8]) -> Message {
        let mut bytes = Vec::from([0; 4]);
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(before);
        Message {
            bytes,
            is_too_long: false,
        }
    }

    /// Begins a request whose protocol puts a structure of these numbers before the attributes.
    pub fn with(kind: u16, flags: i32, numbers: &[u32]) -> Message {
        Message::new(kind, flags, &in_bytes(numbers))
    }

    /// Adds flags, `NLM_F_`.
    pub(super) fn add_flags(&mut self, flags: i32) {
        let old = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]);
        self.bytes[6..8].copy_from_slice(&(old | flags as u16).to_ne_bytes());
    }

    /// Returns the number of bytes so far.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Begins an attribute that has others in it. Returns its place.
    pub fn begin(&mut self, kind: u16) -> usize {
        let at = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        at
    }

    /// Ends the attribute at this place: writes its length, and fills up to four bytes.
    pub fn end(&mut self, at: usize) {
        match u16::try_from(self.bytes.len() - at) {
            Ok(length) => self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes()),
            Err(_) => self.is_too_long = true,
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute with these numbers: a structure of the kernel.
    pub fn numbers(&mut self, kind: u16, numbers: &[u32]) {
        self.bytes(kind, &in_bytes(numbers));
    }

    /// Adds an attribute with these bytes.
    pub fn bytes(&mut self, kind: u16, bytes: &[u8]) {
        let at = self.begin(kind);
        self.bytes.extend(bytes);
        self.end(at);
    }

    /// Adds an attribute with a text.
    pub fn text(&mut self, kind: u16, text: &str) {
        let at = self.begin(kind);
        self.bytes.extend(text.bytes());
        self.bytes.push(0);
        self.end(at);
    }

    /// Adds an attribute with a number.
    pub fn number(&mut self, kind: u16, number: u32) {
        self.numbers(kind, &[number]);
    }

    /// Returns the message.
    pub(super) fn finished(mut self, sequence: u32) -> Result<Vec<u8>, Failed> {
        if self.is_too_long {
            return Err(Failed::said(
                libc::EMSGSIZE,
                "the tree is too large for one message: 65,535 bytes",
            ));
        }
        let length = (self.bytes.len() as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        Ok(self.bytes)
    }
}

/// Returns the bytes of a structure of numbers.
fn in_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Returns the bytes at a place, if there are so many.
pub fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns a text that may end with zeros.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').into()
}

/// Returns the kind, the sequence number and the payload of each message. What is damaged ends them.
pub(super) fn messages(mut left: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(word(left, 0)?) as usize;
        let kind = u16::from_ne_bytes(word(left, 4)?);
        let sequence = u32::from_ne_bytes(word(left, 8)?);
        let payload = left.get(HEADER..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, payload))
    })
}

/// Returns the payload of the first attribute of this kind.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let found = attributes(bytes).find(|(kind, _)| *kind == wanted);
    found.map(|(_, payload)| payload)
}

/// Returns the kind and the payload of each attribute. What is damaged ends them.
pub(super) fn attributes(mut left: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(word(left, 0)?));
        // The two highest bits are flags.
        let kind = u16::from_ne_bytes(word(left, 2)?) & 0x3fff;
        let payload = left.get(4..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            kind in any::<u16>(),
            before in prop::collection::vec(any::<u8>(), 4..=4),
            outer in 0..1000_u16,
            written in prop::collection::vec(
                (0..0x4000_u16, prop::collection::vec(any::<u8>(), 0..40)), 0..6,
            ),
        ) {
            let mut message = Message::new(kind, 0, &before);
            let nested = message.begin(outer);
            for (kind, bytes) in &written {
                message.bytes(*kind, bytes);
            }
            message.end(nested);
            let bytes = message.finished(5).unwrap();
            let read: Vec<_> = messages(&bytes).collect();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!((read[0].0, read[0].1, &read[0].2[..4]), (kind, 5, &before[..]));
            let inner: Vec<_> = attributes(&read[0].2[4..]).collect();
            prop_assert_eq!(inner.len(), 1);
            let inner: Vec<_> = attributes(inner[0].1).map(|(kind, bytes)| (kind, bytes.to_vec())).collect();
            prop_assert_eq!(inner, written);
        }

        /// Any bytes are read to an end that is within them.
        #[test]
        fn damaged_messages_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut length = 0;
            for (_, _, payload) in messages(&bytes) {
                length += HEADER + attributes(payload).map(|(_, bytes)| 4 + bytes.len()).sum::<usize>();
            }
            prop_assert!(length <= bytes.len());
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut message = Message::new(1, 0, &[]);
        message.bytes(1, &[0; 70_000]);
        assert!(message.finished(1).unwrap_err().to_string().contains("65,535"));
    }
}
