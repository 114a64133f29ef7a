//! YAML request bodies.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::depth::MAX_DEPTH;
use super::large_stack::with_large_stack;

/// The media type of YAML bodies.
pub(crate) const MEDIA: &str = "application/yaml";

/// Decodes the first document, null if there is none. Of duplicate keys the last value wins.
///
/// # Errors
///
/// If the text is not valid YAML, or its values, with all aliases replaced, are nested too deep or
/// too many. The message differs from Go's.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid Unicode".to_owned())?;
    let documents: Vec<Value> = with_large_stack(|| {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
            duplicate_keys: DuplicateKeyPolicy::LastWins,
            legacy_octal_numbers: true,
            with_snippet: false,
        };
        serde_saphyr::from_multiple_with_options(text, options)
            .map_err(|error| format!("yaml: {}", error.to_string().lines().next().unwrap_or_default()))
    })??;
    Ok(documents.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_document_is_read_as_go_reads_it() {
        let text =
            "# what it is\na: yes\nb: \"yes\"\nc: |\n  x\n  y\nd: {e: [1, 2.5, 0o17, null, ~]}\na: no\n---\nz: 1\n";
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read, json!({"a": false, "b": "yes", "c": "x\ny\n", "d": {"e": [1, 2.5, 15, null, null]}}));
    }

    #[test]
    fn json_is_yaml_and_nothing_is_null() {
        assert_eq!(read(br#"{"a": {"b": "c"}}"#), Ok(json!({"a": {"b": "c"}})));
        assert_eq!(read(b""), Ok(Value::Null));
    }

    #[test]
    fn what_is_no_yaml_is_refused() {
        assert!(read(b"a: b: c\n").is_err());
        assert!(read(&[0xff]).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    g: &g [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
        assert!(read(bomb.as_bytes()).is_err());
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::encoding::depth::depth;
    use crate::fuzzing::{fuzz, recorded};

    #[test]
    fn aliases_do_not_nest_deeper_than_the_limit() {
        fuzz(1, |_| {
            let open = |depth| ("{a: ".repeat(depth), "}".repeat(depth));
            let chain = |links, depth: usize| {
                let (opening, closing) = open(depth);
                let mut text = format!("x0: &x0 {opening}1{closing}\n");
                for nth in 1..links {
                    text += &format!("x{nth}: &x{nth} {opening}*x{}{closing}\n", nth - 1);
                }
                read(text.as_bytes()).map(|value| super::super::depth::depth(&value))
            };
            assert_eq!(chain(4, 20), Ok(81));
            for (links, depth) in [(6, 20), (60, 60), (1, 100), (1, 100_000)] {
                assert!(chain(links, depth).is_err(), "{links} links, {depth} levels");
            }
        });
    }

    #[test]
    fn any_text_is_decoded_or_refused() {
        let (bodies, _) = recorded();
        let pieces = [
            "a", ": ", "\n", "  ", "- ", "&a ", "*a", "{", "}", "[", "]", ",", "|\n", "'", "\"", "---\n", "<<: ", "!!",
        ];
        fuzz(300, |source| {
            let text = match source.below(3) {
                0 => source.text(&pieces, 60).into_bytes(),
                1 => source.nested(300),
                _ => source.mutated(&bodies),
            };
            if let Ok(value) = read(&text) {
                assert!(depth(&value) <= MAX_DEPTH, "{}", depth(&value));
            }
        });
    }
}
