//! Validation of object names, with the server's error messages.

/// The format of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Labels separated by dots, up to 253 characters. Used by most kinds.
    DnsSubdomain,
    /// One label, up to 63 characters.
    DnsLabel,
    /// One label that starts with a letter.
    Dns1035Label,
    /// Any string that is valid as a path segment.
    PathSegment,
}

impl NameRule {
    /// The problems of a name, one message each. Empty if it is valid.
    pub(crate) fn problems(self, name: &str) -> Vec<String> {
        match self {
            NameRule::DnsSubdomain => dns(name, 253, is_subdomain(name), || {
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            }),
            NameRule::DnsLabel => dns(name, 63, is_label(name), || {
                if is_subdomain(name) {
                    return "must not contain dots";
                }
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
                 with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            }),
            NameRule::Dns1035Label => {
                let letter_first = name.starts_with(|c: char| c.is_ascii_lowercase());
                dns(name, 63, letter_first && is_label(name), || {
                    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                })
            }
            NameRule::PathSegment => {
                if matches!(name, "." | "..") {
                    return vec![format!("may not be '{name}'")];
                }
                ["/", "%"]
                    .iter()
                    .filter(|&&bad| name.contains(bad))
                    .map(|bad| format!("may not contain '{bad}'"))
                    .collect()
            }
        }
    }

    /// The problems of a `generateName` prefix, which may end with a dash.
    pub(crate) fn prefix_problems(self, prefix: &str) -> Vec<String> {
        match (self, prefix.strip_suffix('-')) {
            (NameRule::PathSegment, _) => {
                let problems = self.problems(prefix);
                problems.into_iter().filter(|problem| !problem.starts_with("may not be")).collect()
            }
            // A suffix is always appended, so a trailing dash is valid; it is checked as a letter.
            (_, Some(rest)) if !rest.is_empty() => {
                self.problems(&format!("{}a", rest.get(..rest.len() - 1).unwrap_or(rest)))
            }
            _ => self.problems(prefix),
        }
    }
}

fn dns(name: &str, longest: usize, fits: bool, words: impl Fn() -> &'static str) -> Vec<String> {
    let too_long = (name.len() > longest).then(|| format!("must be no more than {longest} characters"));
    let misfit = (!fits).then(|| words().to_owned());
    too_long.into_iter().chain(misfit).collect()
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
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
    fn labels_subdomains_and_path_segments_are_distinguished() {
        let fits = |rule: NameRule, name: &str| rule.problems(name).is_empty();
        assert!(fits(NameRule::Dns1035Label, "a-1") && !fits(NameRule::Dns1035Label, "1a"));
        assert!(fits(NameRule::DnsLabel, "1a") && !fits(NameRule::DnsLabel, "a.b"));
        assert!(fits(NameRule::DnsSubdomain, "a.b-c.1"));
        assert!(fits(NameRule::PathSegment, "system:Node") && !fits(NameRule::PathSegment, "a/b"));
        for bad in ["", "a..b", "-a", "a-", "A", ".a", "a_b"] {
            assert!(!fits(NameRule::DnsSubdomain, bad), "{bad:?}");
        }
    }

    #[test]
    fn problems_are_reported_in_the_servers_words() {
        assert_eq!(NameRule::DnsLabel.problems("a.b"), ["must not contain dots"]);
        assert_eq!(NameRule::DnsLabel.problems(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(NameRule::PathSegment.problems(".."), ["may not be '..'"]);
        assert_eq!(NameRule::PathSegment.problems("a/%"), ["may not contain '/'", "may not contain '%'"]);
    }

    #[test]
    fn the_beginning_of_a_name_may_end_in_a_dash() {
        assert!(NameRule::DnsSubdomain.prefix_problems("web-").is_empty());
        assert!(NameRule::DnsSubdomain.prefix_problems("web").is_empty());
        assert!(!NameRule::DnsSubdomain.prefix_problems("Web-").is_empty());
        assert!(!NameRule::DnsSubdomain.prefix_problems("-").is_empty());
        assert!(NameRule::PathSegment.prefix_problems(".").is_empty());
        assert!(!NameRule::DnsSubdomain.prefix_problems("é-").is_empty());
    }
}
