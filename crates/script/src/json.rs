//! Values of the engine from and to JSON.
//!
//! The engine has both, character by character and a new string for every part: for a document of a kilobyte that was more
//! than a script of three operations took besides. Here texts are copied in runs, and names are not made into strings
//! first. Whatever is not plain data is left to the engine, so that the answer is the same in every case.
//! - `reader`: text to values; `printer`: values to text; `held`: values and names that are given back.
//!
//! Invariant: the results are those of `JSON.parse` and `JSON.stringify`, and code of a script (a getter, a `toJSON`) runs
//! as often and in the same order.

mod held;
mod printer;
mod reader;

pub(crate) use printer::print;
pub(crate) use reader::read;

#[cfg(test)]
mod tests;
