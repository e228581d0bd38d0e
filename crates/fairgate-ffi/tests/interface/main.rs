//! The C ABI: its header, programs in C and C++, and the same answers as the library.

mod c;
mod header;
mod same_as_library;
