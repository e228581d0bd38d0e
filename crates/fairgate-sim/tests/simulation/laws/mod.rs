//! Textbook laws of TCP and of queues. Each test derives what the law predicts and how far a packet network
//! may be from it. No tolerance is fitted to a result.

mod losses;
mod network;
mod queues;
mod windows;
