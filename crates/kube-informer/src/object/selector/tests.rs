use proptest::prelude::*;

use super::*;
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;

fn object(labels: &str) -> Obj<Untyped> {
    Obj::from_json(format!(r#"{{"metadata":{{"name":"a","labels":{labels}}}}}"#)).unwrap()
}

fn refusal(text: &str) -> String {
    text.parse::<Selector>().unwrap_err().to_string()
}

#[test]
fn every_operator_selects_what_it_says() {
    let object = object(r#"{"app":"web","size":"7","empty":"","in":"x"}"#);
    let selects = |text: &str| text.parse::<Selector>().unwrap().matches(&object.labels());
    for text in [
        "",
        "app",
        "!none",
        "app=web",
        "app == web",
        "app!=db",
        "none!=x",
        "app in (db,web)",
        "app notin (db)",
        "none notin (a)",
        "size>6",
        "size<8",
        "empty=",
        "empty in ()",
        "empty in (a,)",
        "app=web,size=7",
        "in=x",
        "in in (x)",
    ] {
        assert!(selects(text), "{text}");
    }
    for text in [
        "none",
        "!app",
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web)",
        "size>7",
        "size<7",
        "app>1",
        "none>1",
        "none=",
        "none in ()",
        "app=web,size=8",
    ] {
        assert!(!selects(text), "{text}");
    }
}

#[test]
fn wrong_selectors_are_refused_in_the_servers_words() {
    for (text, words) in [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        assert_eq!(refusal(text), words, "{text}");
    }
}

#[test]
fn keys_and_values_are_held_to_the_servers_rules() {
    assert!(refusal("-a=b").starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must"));
    assert!(refusal("a=-b").starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of alphanumeric characters"));
    assert!(refusal("a/b/c").contains("with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"));
    assert!(refusal("/a").contains("prefix part must be non-empty"));
    assert!(refusal("A_b/c").contains("prefix part a lowercase RFC 1123 subdomain must consist of lower case"));
    assert!(refusal(&"a".repeat(64)).contains("name part must be no more than 63 bytes"));
    assert!(refusal(&format!("a={}", "b".repeat(64))).contains("must be no more than 63 bytes"));
    for fine in ["example.com/app=web", "a=", "A.b_c-d=1", "a in (b,c)"] {
        assert!(fine.parse::<Selector>().is_ok(), "{fine}");
    }
}

#[test]
fn field_selectors_judge_names_and_leave_the_rest_to_the_server() {
    let key = ObjectKey::namespaced("ns", "a");
    let judged = |text: &str| text.parse::<FieldSelector>().unwrap().matches(&key);
    assert_eq!(judged(""), Some(true));
    assert_eq!(judged("metadata.name=a,metadata.namespace!=other"), Some(true));
    assert_eq!(judged("metadata.name!=a,spec.x=1"), Some(false));
    assert_eq!(judged("metadata.name=a,spec.x=1"), None);
}

#[test]
fn wrong_field_selectors_are_refused_in_the_servers_words() {
    let refusal = |text: &str| text.parse::<FieldSelector>().unwrap_err().to_string();
    assert_eq!(refusal("a=b,x"), "invalid selector: 'a=b,x'; can't understand 'x'");
    assert_eq!(refusal(r"a=b\c"), r"invalid field selector: invalid escape sequence: \c");
    assert_eq!(refusal("a=b=c"), "invalid field selector: unescaped character in value: =");
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed_again(text in "((!?[ab])|([ab](=|==|!=|<|>)[0-9a]?)|([ab] (in|notin) \\([ab,]{0,4}\\)))(,[c-e]=[0-9a]){0,2}") {
        if let Ok(selector) = text.parse::<Selector>() {
            prop_assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        }
    }

    #[test]
    fn no_text_makes_a_selector_panic(text in "\\PC{0,40}", marks in "[ab=!(),<>\\\\ ]{0,20}") {
        for text in [&text, &marks] {
            drop(text.parse::<Selector>());
            if let Ok(selector) = text.parse::<FieldSelector>() {
                prop_assert_eq!(selector.to_string().parse::<FieldSelector>().unwrap(), selector);
            }
        }
    }
}
