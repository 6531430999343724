//! Functions of other databases, and what this language has instead.

/// Names and what to write.
const FUNCTIONS: [(&[&str], &str); 19] = [
    (&["LEN", "CHAR_LENGTH", "STRLEN"], "LENGTH(text), or ARRAY_LENGTH(array)"),
    (
        &["ISNULL", "IFNULL", "NVL", "COALESCE"],
        "c.x ?? other for what is absent; IS_NULL(c.x) ? other : c.x for null",
    ),
    (&["GETDATE", "GETUTCDATE", "SYSDATE", "CURRENT_TIMESTAMP"], "GetCurrentDateTime()"),
    (&["SUBSTR", "MID"], "SUBSTRING(text, start, length), which counts from 0"),
    (&["CHARINDEX", "INSTR", "LOCATE", "STRPOS"], "INDEX_OF(text, part), which counts from 0"),
    (&["UCASE", "TOUPPER"], "UPPER(text)"),
    (&["LCASE", "TOLOWER"], "LOWER(text)"),
    (&["CEIL"], "CEILING(number)"),
    (&["POW"], "POWER(base, exponent)"),
    (&["LN"], "LOG(number)"),
    (&["RANDOM"], "RAND()"),
    (&["MOD"], "a % b"),
    (&["IF", "DECODE"], "condition ? value : other"),
    (&["CAST", "CONVERT", "TRY_CAST", "TO_NUMBER"], "StringToNumber(text), or ToString(value)"),
    (&["DATEADD", "DATE_ADD"], "DateTimeAdd(part, number, text)"),
    (&["DATEDIFF", "DATE_DIFF"], "DateTimeDiff(part, from, to)"),
    (&["EXTRACT", "DATE_PART"], "DateTimePart(part, text)"),
    (&["STARTS_WITH"], "STARTSWITH(text, beginning)"),
    (&["ENDS_WITH"], "ENDSWITH(text, end)"),
];

/// What to write instead of a function that there is not; empty where nothing is known.
pub(super) fn instead_of(name: &str) -> String {
    let is_it = |(names, _): &&(&[&str], &str)| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    FUNCTIONS.iter().find(is_it).map_or_else(String::new, |(_, instead)| format!("write {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recommended_exists_and_what_it_replaces_does_not() {
        for (names, instead) in FUNCTIONS {
            for name in names {
                assert!(astrarium_sql_functions::find(name).is_none(), "{name}");
            }
            for call in instead.split(|sign: char| !(sign.is_alphanumeric() || sign == '_' || sign == '(')) {
                let Some((name, _)) = call.split_once('(') else { continue };
                assert!(astrarium_sql_functions::find(name).is_some(), "{name} of {instead}");
            }
        }
    }
}
