//! Fair queueing by rounds.
