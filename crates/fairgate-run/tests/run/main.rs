//! A run as those see it who ask and change it.

mod client;
mod control;
mod lists;
mod reservations;
