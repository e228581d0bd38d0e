//! The simulator from outside: networks, traffic, links, TCP, Wi-Fi, results. What a simulation allocates is
//! counted in a program of its own, `memory.rs`.

mod ack_filter;
mod arrivals;
mod autorate;
mod captures;
mod classes;
mod common;
mod connections;
mod departures;
mod devices;
mod emulator;
mod extremes;
mod l4s;
mod laws;
mod ledbat;
mod links;
mod msfc;
mod network;
mod observations;
mod repeated_parts;
mod scenario_files;
mod sources;
mod sqf;
mod tcp_channel;
mod wifi;
mod workers;
