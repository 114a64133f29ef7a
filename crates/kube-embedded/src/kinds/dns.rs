//! Names that must be DNS names, with the server's words for those that are not.

/// What is wrong with a DNS-1035 label, if anything.
pub(crate) fn dns1035_label(name: &str) -> Option<String> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    problem(name, first && is_label(name), 63, || {
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with \
         an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    })
}

/// What is wrong with a DNS-1123 label, if anything.
pub(crate) fn dns1123_label(name: &str) -> Option<String> {
    problem(name, is_label(name), 63, || {
        if name.split('.').all(is_label) {
            return "must not contain dots";
        }
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
         alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    })
}

/// What is wrong with a DNS-1123 subdomain, if anything.
pub(crate) fn dns1123_subdomain(name: &str) -> Option<String> {
    problem(name, name.split('.').all(is_label), 253, || {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with \
         an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    })
}

fn problem(name: &str, fits: bool, longest: usize, words: impl Fn() -> &'static str) -> Option<String> {
    let too_long = (name.len() > longest).then(|| format!("must be no more than {longest} characters"));
    let misfit = (!fits).then(|| words().to_owned());
    let problems: Vec<String> = too_long.into_iter().chain(misfit).collect();
    (!problems.is_empty()).then(|| problems.join(","))
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    let ends_well = bytes.first().is_some_and(|&byte| plain(byte)) && bytes.last().is_some_and(|&byte| plain(byte));
    ends_well && bytes.iter().all(|&byte| plain(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains_are_told_apart() {
        assert_eq!(dns1035_label("a-1"), None);
        assert!(dns1035_label("1a").is_some());
        assert_eq!(dns1123_label("1a"), None);
        assert!(dns1123_label("a.b").is_some());
        assert_eq!(dns1123_subdomain("a.b-c.1"), None);
        for bad in ["", "a..b", "-a", "a-", "A", ".a"] {
            assert!(dns1123_subdomain(bad).is_some(), "{bad:?}");
        }
        assert_eq!(dns1123_label(&"a".repeat(64)).unwrap(), "must be no more than 63 characters");
    }
}
