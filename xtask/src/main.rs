//! Our tools.
fn main() {}
