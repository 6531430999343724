//! sql-functions
