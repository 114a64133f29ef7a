use super::client::Client;
use kube_embedded::Server;
use kube_embedded::access::{Access, Rule, User};
use std::hash::{BuildHasher, RandomState};
use std::{env, fs};

const AUTHENTICATION: &str = "authentication.k8s.io";

/// What the user `impersonator` may do: verb, group, resource and name. Kube-apiserver needs a role
/// for it, which the cases create.
pub(crate) const IMPERSONATOR_MAY: [(&str, &str, &str, &str); 9] = [
    ("impersonate-on:user-info:create", AUTHENTICATION, "selfsubjectreviews", ""),
    ("impersonate:user-info", AUTHENTICATION, "users", "ann"),
    ("impersonate:user-info", AUTHENTICATION, "uids", "u-1"),
    ("impersonate:user-info", AUTHENTICATION, "groups", "dev"),
    ("impersonate:user-info", AUTHENTICATION, "userextras/example.com/scopes", "view"),
    ("impersonate", "", "users", "bob"),
    ("impersonate", "", "groups", "dev"),
    ("impersonate", "", "serviceaccounts", "robot"),
    ("impersonate", AUTHENTICATION, "userextras/scopes", "view"),
];

/// The server under test.
pub(crate) struct Target {
    client: Client,
    admin_token: Option<String>,
    nobody_token: Option<String>,
    impersonator_token: Option<String>,
    is_sharded: bool,
    expected_failures: String,
    run: String,
    _server: Option<Server>,
}

impl Target {
    /// The server given by the environment, or two embedded servers: one with a socket and one in
    /// process.
    pub(super) async fn from_environment() -> Vec<Self> {
        match env::var("KUBE_CONFORMANCE_URL") {
            Ok(url) => vec![Self::at(&url)],
            Err(_) => {
                let known = include_str!("../expected-failures-embedded.txt");
                let socket = Self::embedded(known, true, |server| Client::new(&server.url(), None)).await;
                let known = include_str!("../expected-failures-in-process.txt");
                let in_process = Self::embedded(known, false, |server| Client::InProcess(server.service())).await;
                vec![socket, in_process]
            }
        }
    }

    fn at(url: &str) -> Self {
        let ca = env::var("KUBE_CONFORMANCE_CA").ok();
        let ca = ca.map(|path| fs::read_to_string(path).expect("KUBE_CONFORMANCE_CA is a readable file"));
        Self {
            client: Client::new(url, ca.as_deref()),
            admin_token: env::var("KUBE_CONFORMANCE_TOKEN").ok(),
            nobody_token: env::var("KUBE_CONFORMANCE_NOBODY_TOKEN").ok(),
            impersonator_token: env::var("KUBE_CONFORMANCE_IMPERSONATOR_TOKEN").ok(),
            is_sharded: env::var_os("KUBE_CONFORMANCE_SHARDED").is_some(),
            expected_failures: expected_failures(include_str!("../expected-failures-real.txt")),
            run: run(),
            _server: None,
        }
    }

    /// Starts an embedded server with the users that kube-apiserver is started with.
    async fn embedded(known: &str, is_sharded: bool, client: impl FnOnce(&Server) -> Client) -> Self {
        let (admin, nobody, impersonator) = ("admin-token", "nobody-token", "impersonator-token");
        let access = Access::closed()
            .token(admin, User::new("admin").uid("1").group("system:masters"))
            .token(nobody, User::new("nobody").uid("2"))
            .token(impersonator, User::new("impersonator").uid("3"));
        let access = IMPERSONATOR_MAY.into_iter().fold(access, |access, (verb, group, resource, name)| {
            let rule = Rule::new().user("impersonator").verb(verb).resource(group, resource);
            access.allow(if name.is_empty() { rule } else { rule.name(name) })
        });
        let builder = Server::builder().access(access).bootstrap_objects();
        let builder = if is_sharded { builder.sharded_list_and_watch() } else { builder };
        let server = builder.start().await.expect("a port on loopback is free");
        // Compacts the first versions, as on a server that has been running for some time.
        server.compact_now();
        Self {
            client: client(&server),
            admin_token: Some(admin.to_owned()),
            nobody_token: Some(nobody.to_owned()),
            impersonator_token: Some(impersonator.to_owned()),
            is_sharded,
            expected_failures: expected_failures(known),
            run: run(),
            _server: Some(server),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn admin_token(&self) -> Option<&str> {
        self.admin_token.as_deref()
    }

    pub(super) fn nobody_token(&self) -> Option<&str> {
        self.nobody_token.as_deref()
    }

    pub(super) fn impersonator_token(&self) -> Option<&str> {
        self.impersonator_token.as_deref()
    }

    /// Whether the server obeys shard selectors.
    pub(super) fn is_sharded(&self) -> bool {
        self.is_sharded
    }

    /// The content of the file of expected failures.
    pub(super) fn expected_failures(&self) -> &str {
        &self.expected_failures
    }

    /// Distinguishes the names of this run from those of other runs on the same server.
    pub(super) fn run(&self) -> &str {
        &self.run
    }
}

fn expected_failures(default: &str) -> String {
    match env::var("KUBE_CONFORMANCE_EXPECTED_FAILURES") {
        Ok(path) => fs::read_to_string(path).expect("KUBE_CONFORMANCE_EXPECTED_FAILURES is a readable file"),
        Err(_) => default.to_owned(),
    }
}

fn run() -> String {
    format!("{:06x}", RandomState::new().hash_one(()) & 0xff_ffff)
}
