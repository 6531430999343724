//! SQL text: any text is a query or is refused with a place inside it; what is read prints as text that means the same,
//! and is planned or refused.
#![no_main]

use astrarium_sql_plan::{Catalog, Parameters, plan};
use astrarium_sql_syntax::{check, parse, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let query = match parse(text) {
        Ok(query) => query,
        Err(error) => {
            assert!(error.span.range().end <= text.len());
            return;
        }
    };
    let printed = print(&query);
    // Printing adds parentheses, so a text near the limits may not be read again.
    if let Ok(again) = parse(&printed) {
        assert_eq!(again, query, "{printed}");
        assert_eq!(print(&again), printed);
    }
    if check(&query, text).is_empty() {
        let _ = plan(&query, &Catalog::default(), &Parameters::default());
    }
});
