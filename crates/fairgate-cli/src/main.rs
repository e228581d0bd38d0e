//! The program `fairgate`.

fn main() {}
