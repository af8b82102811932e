//! The house's own checks.

fn main() {}
