//! The names that become parts of a URL's path.

use super::ParseError;

/// The maximum length of a namespace's name: that of a DNS label.
const MAX_NAMESPACE: usize = 63;

/// Checks the name of a namespace: a lowercase DNS label.
pub(crate) fn check_namespace(name: &str) -> Result<(), ParseError> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=MAX_NAMESPACE).contains(&name.len())
        && name.bytes().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if valid {
        return Ok(());
    }
    Err(ParseError::new(format!(
        "{name:?} is no name of a namespace, which has at most {MAX_NAMESPACE} lowercase letters, digits and inner \
         hyphens; \"\" stands for all namespaces"
    )))
}

/// Checks a part of a resource's name: its group, its version or its plural. Servers allow fewer
/// characters still; these are the ones that mean only themselves in a path.
pub(crate) fn check_segment(what: &str, text: &str) -> Result<(), ParseError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ParseError::new(format!("{text:?} is no {what} of a resource")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_lowercase_dns_label() {
        let longest = "a".repeat(63);
        for name in ["default", "a", "0", "kube-system", "a--b", longest.as_str()] {
            assert_eq!(check_namespace(name), Ok(()));
        }
        let too_long = "a".repeat(64);
        for name in [
            "",
            "*",
            "Default",
            "Not Valid!",
            "../../etc",
            "a/b",
            "a.b",
            "-a",
            "a-",
            "a_b",
            "ä",
            "a\n",
            "%2e",
            too_long.as_str(),
        ] {
            let error = check_namespace(name).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{name:?} is no name of a namespace")), "{error}");
        }
    }

    #[test]
    fn a_part_of_a_resources_name_means_only_itself_in_a_path() {
        for text in ["pods", "v1", "apps", "cert-manager.io", "v1beta1"] {
            assert_eq!(check_segment("plural", text), Ok(()));
        }
        for text in ["", ".", "..", "a/b", "a?b", "a#b", "a%2f", "a b", "pods?watch=1", "ä"] {
            assert!(check_segment("plural", text).is_err(), "{text}");
        }
    }
}
