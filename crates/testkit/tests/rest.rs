//! Runs the REST cases.
fn main() {}
