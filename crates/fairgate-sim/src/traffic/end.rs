//! The ends of a connection.

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The source of the flow.
    Sender,
    /// The destination of the flow.
    Receiver,
}

impl End {
    /// Returns the opposite end.
    pub(crate) fn other(self) -> End {
        match self {
            End::Sender => End::Receiver,
            End::Receiver => End::Sender,
        }
    }
}
