//! What the kernel counts for a TCP connection, and settings that no crate wraps (tcp(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// `TCP_NOTSENT_LOWAT` of linux/tcp.h.
const NOTSENT_LOWAT: libc::c_int = 25;

/// The positions of some fields of `struct tcp_info` (linux/tcp.h), whose layout never changes. It only
/// grows.
const OPTIONS: usize = 5;
const SEND_MSS: usize = 16;
const RECEIVE_MSS: usize = 20;
const RTT: usize = 68;
const CONGESTION_WINDOW: usize = 80;
const TOTAL_RETRANSMITTED: usize = 100;
const BYTES_RECEIVED: usize = 128;
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;
const DELIVERED: usize = 192;
/// The length up to the last of these fields.
const LENGTH: usize = DELIVERED + 4;

/// The bit of the field of options that says that segments have timestamps.
const TIMESTAMPS: u8 = 1;

/// What the kernel counts for a connection, since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Payload received in order.
    pub bytes_received: u64,
    /// Segments with payload received.
    pub data_segments_in: u32,
    /// Segments with payload sent, including retransmissions.
    pub data_segments_out: u32,
    /// Segments that have arrived at the other end, acknowledged one by one or all together, each once. The
    /// first one of a connection that was opened from here counts, too.
    pub delivered: u32,
    /// The payload of a full segment that is sent.
    pub segment_payload: u32,
    /// The payload of a full segment that is received, as far as the kernel has seen one.
    pub received_payload: u32,
    /// Whether segments have timestamps: 12 bytes of options.
    pub has_timestamps: bool,
    /// Segments retransmitted.
    pub retransmissions: u32,
    /// The smoothed round-trip time, µs.
    pub rtt_us: u32,
    /// The congestion window, segments.
    pub congestion_window: u32,
}

impl TcpFigures {
    pub(crate) fn of(socket: &impl AsFd) -> io::Result<TcpFigures> {
        let mut info = [0u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the live buffer, and the number written into
        // the live `length`.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        Errno::result(result)?;
        if (length as usize) < LENGTH {
            return Err(io::Error::other("the kernel is older than Linux 4.18"));
        }
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| info[at + byte]));
        Ok(TcpFigures {
            bytes_received: u64::from_ne_bytes(std::array::from_fn(|byte| info[BYTES_RECEIVED + byte])),
            data_segments_in: word(DATA_SEGMENTS_IN),
            data_segments_out: word(DATA_SEGMENTS_OUT),
            delivered: word(DELIVERED),
            segment_payload: word(SEND_MSS),
            received_payload: word(RECEIVE_MSS),
            has_timestamps: info[OPTIONS] & TIMESTAMPS != 0,
            retransmissions: word(TOTAL_RETRANSMITTED),
            rtt_us: word(RTT),
            congestion_window: word(CONGESTION_WINDOW),
        })
    }
}

/// Limits the window that a socket offers, bytes. Connections of a listening socket inherit it.
pub(crate) fn clamp_window(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Makes writes wait while more than this many bytes are in the send buffer and not sent yet.
pub(crate) fn limit_unsent(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, NOTSENT_LOWAT, bytes)
}

fn set(socket: &impl AsFd, option: libc::c_int, value: u32) -> io::Result<()> {
    // SAFETY: the kernel reads four bytes of the live `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_counts_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        clamp_window(&listener, 20_000).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        limit_unsent(&sender, 10_000).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        let received = TcpFigures::of(&receiver).unwrap();
        assert_eq!(received.bytes_received, 5000);
        assert!(received.data_segments_in > 0 && received.received_payload > 0);
        let timestamps = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").unwrap();
        assert_eq!(received.has_timestamps, timestamps.trim() != "0");
        let sent = TcpFigures::of(&sender).unwrap();
        assert!(sent.data_segments_out > 0 && sent.congestion_window > 0);
        assert_eq!((sent.bytes_received, sent.retransmissions), (0, 0));
        // What was read has arrived, and its acknowledgement comes.
        let whole = 5000 / sent.segment_payload;
        while TcpFigures::of(&sender).unwrap().delivered < whole.max(1) {
            std::thread::yield_now();
        }
    }
}
