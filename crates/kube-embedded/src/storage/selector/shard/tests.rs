use super::*;
use crate::fuzzing::fuzz;

#[test]
fn a_selector_is_shown_as_the_real_server_shows_it() {
    let shown = "shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000') || \
                 shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')";
    let given = shown.replace(' ', "\n  ").replace('\'', "\"");
    assert_eq!(ShardSelector::parse(&given).unwrap().to_string(), shown);
}

#[test]
fn nesting_is_limited() {
    for text in ["(".repeat(100_000), format!("a{}", ".b".repeat(100_000)), "f(".repeat(100_000)] {
        let error = ShardSelector::parse(&text).unwrap_err();
        assert!(error.message().contains("recursion limit exceeded"), "{}", error.message());
    }
}

#[test]
fn what_is_accepted_is_shown_in_a_form_that_is_accepted() {
    let pieces = [
        "shardRange(",
        "object.metadata.uid",
        "object.metadata.namespace",
        ", ",
        "'0x0000000000000000'",
        "'0x8000000000000000'",
        "'0x10000000000000000'",
        "\"0xffffffffffffffff\"",
        ")",
        "(",
        " || ",
        "|",
        "'",
        "r'",
        "'''",
        "\\",
        "\\x3",
        "//",
        "\n",
        ".",
        "a",
        "-1",
        "0x1u",
        "é",
    ];
    let range = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    fuzz(2000, |source| {
        let text = match source.one_in(2) {
            true => source.text(&pieces, 20),
            false => format!("{range}{}{range}", source.text(&pieces, 3)),
        };
        if let Ok(selector) = ShardSelector::parse(&text) {
            assert_eq!(ShardSelector::parse(&selector.to_string()).unwrap(), selector, "{text}");
        }
    });
}
