//! Runs a tree of disciplines on live traffic between two Linux interfaces.
