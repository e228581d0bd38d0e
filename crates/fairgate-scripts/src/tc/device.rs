//! The device of a script.

/// The properties of the device on which tc's and the kernel's defaults depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// The default limit of fifos, in packets.
    pub txqueuelen: u32,
    /// The length of the link-layer header, in bytes.
    pub hard_header_len: u32,
    /// The number of transmit queues. If it is unknown, `mq` and `multiq` have as many as qdiscs are attached
    /// to.
    pub queues: Option<u16>,
    /// The speed of the link in bit/s, of which `10%` is a part.
    pub speed: Option<u64>,
    /// Whether packets may have marks of a firewall. Frames that a bridge forwards have none.
    pub has_marks: bool,
}

/// An Ethernet device with Linux's defaults.
impl Default for Device {
    fn default() -> Device {
        Device {
            mtu: 1500,
            txqueuelen: 1000,
            hard_header_len: 14,
            queues: None,
            speed: None,
            has_marks: true,
        }
    }
}
