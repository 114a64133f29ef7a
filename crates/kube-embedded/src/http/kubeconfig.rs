//! Writes the kubeconfig with which clients reach the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Writes a kubeconfig. The URL and the base64 PEM need no YAML quoting; the token is quoted.
pub(crate) fn write(url: &str, authority_pem: Option<&str>, token: Option<&str>) -> String {
    let authority = authority_pem
        .map(|pem| format!("    certificate-authority-data: {}\n", STANDARD.encode(pem)))
        .unwrap_or_default();
    let user = token.map_or_else(|| " {}\n".to_owned(), |token| format!("\n    token: {token:?}\n"));
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: embedded\n  cluster:\n    server: {url}\n{authority}\
         contexts:\n- name: embedded\n  context:\n    cluster: embedded\n    user: embedded\n\
         current-context: embedded\nusers:\n- name: embedded\n  user:{user}"
    )
}
