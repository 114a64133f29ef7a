//! A server that puts control characters into everything that a client may print.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::command;

/// Escape sequences, other control characters, and characters that hide text or its direction.
pub(crate) const HOSTILE: &str =
    "\x1b[2J\x1b]0;title\x07\r\u{8}\n\t\0\u{7f}\u{85}\u{9b}31m\u{202e}x\u{2066}\u{200b}\u{61c}\u{feff}\u{e0041}";

/// Which kinds there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinds {
    All,
    Prompt,
}

/// The server. It serves built-in kinds, a custom kind, and kinds whose requests fail or stall.
pub(crate) struct HostileServer {
    url: String,
    /// The number of changes that every watch sends after its initial events.
    changes: Arc<(Mutex<u64>, Condvar)>,
}

impl HostileServer {
    pub(crate) fn start() -> Self {
        Self::with(Kinds::All)
    }

    /// Without the kind whose lists never end.
    pub(crate) fn prompt() -> Self {
        Self::with(Kinds::Prompt)
    }

    fn with(kinds: Kinds) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let changes: Arc<(Mutex<u64>, Condvar)> = Arc::default();
        let for_connections = changes.clone();
        // Ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let changes = for_connections.clone();
                // A client that closes its connection is no failure.
                thread::spawn(move || stream.and_then(|stream| answer(stream, kinds, &changes)));
            }
        });
        Self { url, changes }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.args(["--server", &self.url]);
        command
    }

    /// Sends a change of the object to every watch.
    pub(crate) fn change(&self) {
        *self.changes.0.lock().expect("not poisoned") += 1;
        self.changes.1.notify_all();
    }
}

fn answer(mut stream: TcpStream, kinds: Kinds, changes: &(Mutex<u64>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let target = request.split_whitespace().nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let head = |code: &str| format!("HTTP/1.1 {code}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
    if path.contains("refused") || path.contains("failing") {
        let code = if path.contains("refused") { 403 } else { 500 };
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": HOSTILE, "message": HOSTILE});
        return stream.write_all(format!("{}{status}", head(&format!("{code} No"))).as_bytes());
    }
    if let Some(document) = discovery(path, kinds) {
        return stream.write_all(format!("{}{document}", head("200 OK")).as_bytes());
    }
    if path.contains("customresourcedefinitions") {
        return stream.write_all(format!("{}{{}}", head("404 Not Found")).as_bytes());
    }
    let plural = path.rsplit('/').next().unwrap_or_default();
    if !query.contains("watch=true") {
        let items = [object(plural, 1)];
        let list = json!({"kind": "AnyList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
            .to_string();
        stream.write_all(head("200 OK").as_bytes())?;
        if !path.contains("slow") {
            return stream.write_all(list.as_bytes());
        }
        stream.write_all(&list.as_bytes()[..list.len() - 1])?;
        return reader.read_to_end(&mut Vec::new()).map(drop);
    }
    stream.write_all(head("200 OK").as_bytes())?;
    let mut send = |name: &str, object: &Value| {
        stream.write_all(format!("{}\n", json!({"type": name, "object": object})).as_bytes())
    };
    if query.contains("sendInitialEvents=true") {
        send("ADDED", &object(plural, 1))?;
        if !path.contains("slow") {
            let metadata = json!({"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}});
            send("BOOKMARK", &json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}))?;
        }
    }
    let mut sent = 0;
    while !path.contains("slow") {
        let count = changes.1.wait_while(changes.0.lock().expect("not poisoned"), |count| *count == sent);
        sent = *count.expect("not poisoned");
        send("MODIFIED", &object(plural, sent + 1))?;
    }
    // The watch stays open until the client closes it.
    reader.read_to_end(&mut Vec::new()).map(drop)
}

fn discovery(path: &str, kinds: Kinds) -> Option<Value> {
    let resource = |plural: &str, kind: &str, short: &str| json!({"name": plural, "singularName": "", "kind": kind, "namespaced": true, "verbs": ["list", "watch"], "shortNames": [short]});
    let list = |version: &str, resources: &[Value]| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
    Some(match path {
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => {
            let version = json!({"groupVersion": "example.com/v1", "version": "v1"});
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "example.com", "versions": [version]}]})
        }
        "/api/v1" => {
            let mut resources = vec![
                resource("pods", "Pod", "po"),
                resource("events", "Event", "ev"),
                resource("configmaps", "ConfigMap", "cm"),
                resource("odd", &format!("Odd{HOSTILE}"), "odd"),
                resource("refused", "Refused", "refused"),
                resource("failing", "Failing", "failing"),
                // A URL cannot contain such a name.
                resource(&format!("unusable{HOSTILE}"), "Unusable", "unusable"),
            ];
            if kinds == Kinds::All {
                resources.push(resource("slow", "Slow", "slow"));
            }
            list("v1", &resources)
        }
        "/apis/example.com/v1" => list("example.com/v1", &[resource("widgets", "Widget", "wi")]),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com" => {
            let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
            let columns = [column(&format!("SIZE{HOSTILE}"), ".spec.size"), column("MAP", ".spec.map")];
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns}]},
            })
        }
        _ => return None,
    })
}

/// The object of a kind at a version; between versions, values and keys change.
fn object(plural: &str, version: u64) -> Value {
    let changed = format!("{version}{HOSTILE}");
    let fields = json!({"f:status": {"f:phase": {}}, "f:data": {}, "f:spec": {}, format!("f:{HOSTILE}"): {}});
    let managed = json!([{"manager": changed, "operation": "Update", "time": format!("9999-01-01T00:00:00Z{HOSTILE}"), "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    let metadata = json!({
        "name": format!("a{HOSTILE}"), "namespace": "default", "uid": "u", "resourceVersion": version.to_string(),
        "creationTimestamp": changed, "labels": {HOSTILE: HOSTILE}, "annotations": {HOSTILE: changed},
        "managedFields": managed,
    });
    let map = json!({HOSTILE: changed, changed.as_str(): "new"});
    match plural {
        "pods" => json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"nodeName": HOSTILE, "containers": [{"name": HOSTILE, "image": HOSTILE}]},
            "status": {"phase": changed, "reason": changed, "podIP": HOSTILE, "conditions": [{"type": HOSTILE, "status": changed, "message": changed}],
                "containerStatuses": [{"name": HOSTILE, "state": {"waiting": {"reason": changed, "message": changed}}}]},
        }),
        "events" => json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata, "type": HOSTILE, "reason": HOSTILE,
            "message": changed, "involvedObject": {"kind": HOSTILE, "name": HOSTILE}, "source": {"component": HOSTILE},
        }),
        "widgets" => json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": changed, "map": map},
        }),
        _ => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map, "status": {"phase": changed}})
        }
    }
}
