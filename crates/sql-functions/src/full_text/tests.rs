//! Cases and laws of full text.

use super::*;
use crate::testing::{check_all, check_in, check_wrong_types, list};
use proptest::prelude::*;

#[track_caller]
fn check_words(language: TextLanguage, text: &str, expected: &[&str]) {
    let mut words = Vec::new();
    for_each_word(text, language, |stem, place| words.push(format!("{place}:{stem}")));
    assert_eq!(words, expected, "{text}");
}

#[test]
fn words() {
    use TextLanguage::{English, French, German, Spanish};
    for (language, text, expected) in [
        (English, "The running Dogs, and cats!", &["1:run", "2:dog", "4:cat"][..]),
        (
            English,
            "Population was 1,977 (1963-69) at 3.5%.",
            &["0:popul", "2:1,977", "3:1963", "4:69", "6:3.5"],
        ),
        (
            English,
            "don't O\u{2019}Hare 'quoted' thirty-page",
            &["0:don't", "1:o\u{2019}har", "2:quot", "3:thirti", "4:page"],
        ),
        (English, "the of a", &[]),
        (English, "", &[]),
        (English, "日本語 text", &["0:日", "1:本", "2:語", "3:text"]),
        (English, "e\u{301}te\u{301} 😀", &["0:e\u{301}te\u{301}"]),
        (French, "Les chevaux et la continuation", &["1:cheval", "4:continu"]),
        (German, "Die Häuser und Katzen", &["1:haus", "3:katz"]),
        (Spanish, "Los niños corriendo", &["1:niñ", "2:corr"]),
    ] {
        check_words(language, text, expected);
    }
}

#[test]
fn languages() {
    for (name, language) in [
        ("en-US", Some(TextLanguage::English)),
        ("pt-BR", Some(TextLanguage::Portuguese)),
        ("pt-PT", Some(TextLanguage::Portuguese)),
        ("DE", Some(TextLanguage::German)),
        ("ja-JP", None),
        ("", None),
    ] {
        assert_eq!(TextLanguage::from_name(name), language);
    }
    for words in [
        stop_words::ENGLISH,
        stop_words::FRENCH,
        stop_words::GERMAN,
        stop_words::ITALIAN,
        stop_words::PORTUGUESE,
        stop_words::SPANISH,
    ] {
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(words.iter().all(|word| crate::string::lower(word) == *word));
    }
}

#[test]
fn containment() {
    check_all(&[
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "bicycle"]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "BICYCLES"]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "blue"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "red bicycle"]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "bicycle red"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "red sale"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "bicycles for sale"]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", "for"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles for sale", ""]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["the United Kingdom", "United States"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Johnson", "John"]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "rad", "distance": 1}]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "rad", "distance": 0}]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "rad"}]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "rd bicicle", "distance": 1}]"#, "true"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "blue", "distance": 2}]"#, "false"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "red", "distance": 3}]"#, "undefined"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"term": "red", "distance": 0.5}]"#, "undefined"),
        ("FULLTEXTCONTAINS", r#"["Red bicycles", {"distance": 1}]"#, "undefined"),
        ("FULLTEXTCONTAINSALL", r#"["Red bicycles for sale", "red", "sale"]"#, "true"),
        ("FULLTEXTCONTAINSALL", r#"["Red bicycles for sale", "red", "blue"]"#, "false"),
        ("FULLTEXTCONTAINSANY", r#"["Red bicycles for sale", "blue", "red"]"#, "true"),
        ("FULLTEXTCONTAINSANY", r#"["Red bicycles for sale", "blue", "green"]"#, "false"),
        ("_FULLTEXTWORDCOUNT", r#"["Red bicycles for sale"]"#, "3"),
        ("_FULLTEXTWORDCOUNT", r#"[""]"#, "0"),
    ]);
    let german = Context { full_text_language: TextLanguage::German, ..Context::default() };
    check_in(&german, "FULLTEXTCONTAINS", r#"["Alte Häuser", "Haus"]"#, "true");
    check_in(&german, "FULLTEXTCONTAINS", r#"["Alte Häuser und Bäume", "und"]"#, "false");
}

#[test]
fn wrong_types() {
    let wrong = ["undefined", "null", "true", "1", "[]", "{}"];
    for name in ["FULLTEXTCONTAINS", "FULLTEXTCONTAINSALL", "FULLTEXTCONTAINSANY"] {
        check_wrong_types(name, "[?, \"a\"]", &wrong);
        check_wrong_types(name, "[\"red\", ?]", &wrong);
    }
    check_wrong_types("_FULLTEXTWORDCOUNT", "[?]", &wrong);
    check_wrong_types("_FULLTEXTSCORE", "[?, [\"a\"], 1, 1, [1]]", &wrong);
    check_wrong_types(
        "_FULLTEXTSCORE",
        "[\"a\", ?, 1, 1, [1]]",
        &["undefined", "null", "\"a\"", "[1]", "[]"],
    );
    check_wrong_types("_FULLTEXTSCORE", "[\"a\", [\"a\"], ?, 1, [1]]", &["undefined", "null", "\"a\""]);
    check_wrong_types("_FULLTEXTSCORE", "[\"a\", [\"a\"], 1, ?, [1]]", &["undefined", "null", "\"a\""]);
    check_wrong_types(
        "_FULLTEXTSCORE",
        "[\"a\", [\"a\"], 1, 1, ?]",
        &["undefined", "1", "[]", "[1,2]", "[\"1\"]"],
    );
}

#[test]
fn rare_terms_in_short_texts_come_first() {
    let texts = [
        "bicycle bicycle shop",
        "bicycle",
        "bicycle shop in a quiet town by the sea",
        "bicycle shop in a quiet town by the sea with many boats and birds",
        "boat",
    ];
    let score_of = |text: &str| {
        let arguments = list(&format!("[\"{text}\", [\"bicycles\"], 5, 20, [4]]"));
        match score(&Context::default(), &arguments) {
            Some(Value::Number(score)) => score,
            other => panic!("{other:?}"),
        }
    };
    let scores: Vec<f64> = texts.iter().map(|text| score_of(text)).collect();
    assert!(scores.windows(2).all(|pair| pair[0] > pair[1]), "{scores:?}");
    assert!(scores[4].abs() < f64::EPSILON);
    let rare = bm25(&CorpusStatistics { document_count: 100.0, word_count: 1000.0 }, 1.0, 1, 10);
    let common = bm25(&CorpusStatistics { document_count: 100.0, word_count: 1000.0 }, 90.0, 1, 10);
    assert!(rare > common && common > 0.0);
    let odd = bm25(&CorpusStatistics { document_count: -5.0, word_count: f64::NAN }, f64::INFINITY, 1, 0);
    assert!(odd.is_finite());
}

/// Worked out by hand from the formula with 1.2 and 0.75: four documents of four words on average.
#[test]
fn scores_are_those_of_the_formula() {
    let statistics = CorpusStatistics { document_count: 4.0, word_count: 16.0 };
    for (hit_count, found, length, expected) in [
        // ln 2 times 2.2 / 1.75, 4.4 / 3.2, 2.2 / 2.65.
        (2.0, 1, 2, 0.871_385),
        (2.0, 2, 4, 0.953_077),
        (2.0, 1, 6, 0.575_443),
        // ln(1 + 1.5 / 3.5) times 1, and ln(1 + 3.5 / 1.5) times 1.
        (3.0, 1, 4, 0.356_675),
        (1.0, 1, 4, 1.203_973),
        (2.0, 0, 4, 0.0),
    ] {
        let score = bm25(&statistics, hit_count, found, length);
        assert!((score - expected).abs() < 1e-6, "{hit_count}, {found}, {length}: {score}");
    }
}

#[test]
fn hostile_searches_take_little_time() {
    let text = "ab ".repeat(100_000);
    let terms = vec![Value::from("ab ab ab cd"); 256];
    let arguments: Vec<Value> = std::iter::once(text.as_str().into()).chain(terms).collect();
    assert_eq!(contains(&Context::default(), &arguments, true), Some(false.into()));
    let many = vec![Value::from("ab cd"); 514];
    assert_eq!(contains(&Context::default(), &many, true), None);
    let fuzzy = list(&format!("[\"a\"{}]", r#",{"term":"abc","distance":1}"#.repeat(33)));
    assert_eq!(contains(&Context::default(), &fuzzy, true), None);
    let long = "x".repeat(1 << 20);
    assert_eq!(word_count(&long, TextLanguage::English), 1);
    assert_eq!(contains(&Context::default(), &[long.as_str().into(), "y".into()], true), Some(false.into()));
}

proptest! {
    #[test]
    fn any_text_has_words(text in any::<String>()) {
        for language in TextLanguage::ALL {
            let mut count = 0;
            for_each_word(&text, language, |stem, _| {
                assert!(!stem.is_empty());
                count += 1;
            });
            prop_assert_eq!(count, word_count(&text, language));
        }
    }

    #[test]
    fn words_of_letters_have_stems(text in "[a-zäöüßéèçñãõ]{1,12}( [a-zéàêíóúì']{1,10}){0,4}") {
        for language in TextLanguage::ALL {
            for_each_word(&text, language, |_, _| {});
        }
    }

    #[test]
    fn a_text_holds_its_own_words(text in "[a-z]{3,8}( [a-z]{3,8}){0,5}") {
        let term = SearchTerm::parse(&text.as_str().into(), TextLanguage::English).unwrap();
        let (found, length) = occurrences(&text, std::slice::from_ref(&term), TextLanguage::English);
        prop_assert_eq!(found[0] > 0, length > 0);
    }
}
