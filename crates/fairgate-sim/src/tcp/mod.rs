//! TCP as a protocol engine without I/O: segments and times in, segments and timers out.
