//! Reservations: what is admitted and refused, and whether promises hold.

mod promises;
mod table;
