//! Active queue management over one queue.
