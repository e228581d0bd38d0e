//! A frame on its way from the delay line to a back end.

use nix::errno::Errno;

use crate::offload::Part;

/// Where the frames of a direction leave.
pub(crate) trait Exit {
    /// Sends some of `frames`, in order. Returns how many were sent, and the error of the next one: as
    /// [`Backend::send`](crate::backend::Backend::send).
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>);

    /// Sends a frame that [`Exit::send`] rejected as too long, if only its VLAN tag makes it too long.
    fn send_tagged(&mut self, frame: &[u8]) -> Result<(), Errno>;

    /// Returns whether sent frames are still in use, until [`Exit::completed`] returns their chunks.
    fn keeps_sent(&self) -> bool {
        false
    }

    /// Returns the chunk of a frame that was sent and is not in use any more.
    fn completed(&mut self) -> Option<u32> {
        None
    }
}

/// A finished frame that is handed to a back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    /// The whole frame.
    pub(crate) bytes: &'a [u8],
    /// Which part of a super-packet it is, if it was cut from one and may be joined again.
    pub(crate) part: Option<Part>,
}

impl<'a> Outgoing<'a> {
    /// A frame that is sent as it is.
    pub(crate) fn whole(bytes: &'a [u8]) -> Outgoing<'a> {
        Outgoing { bytes, part: None }
    }

    /// Returns whether `next` continues this frame's super-packet, with the same DSCP and ECN field.
    #[inline]
    pub(crate) fn is_continued_by(&self, next: &Outgoing<'_>) -> bool {
        match (&self.part, &next.part) {
            (Some(part), Some(following)) => part.is_continued_by(self.bytes, following, next.bytes),
            _ => false,
        }
    }
}
