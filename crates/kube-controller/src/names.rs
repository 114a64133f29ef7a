//! Names of objects and of this machine.

/// Whether an object can have this name: lower case labels of DNS.
pub(crate) fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        is_end(label.as_bytes().first())
            && is_end(label.as_bytes().last())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The name of this machine, which in a pod is the name of the pod.
#[cfg(unix)]
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}
