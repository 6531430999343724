//! sql-syntax
