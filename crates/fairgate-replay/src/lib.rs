//! Replays recorded operations of a queueing discipline through ours and compares operation by operation.
