//! Maintenance tasks.

fn main() {}
