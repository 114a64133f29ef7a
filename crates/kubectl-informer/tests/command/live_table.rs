//! The live table of `get --watch` on a terminal.

use crate::support::pty::Live;
use crate::support::{Rig, config_map};
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule};
use serde_json::{Value, json};

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
    })
}

fn watch(rig: &Rig, size: (u16, u16), args: &[&str]) -> Live {
    let url = rig.server.url();
    Live::start(size.0, size.1, &[&["get", "--watch", "--server", &url], args].concat())
}

/// The last row of the screen.
fn status(live: &Live) -> String {
    live.terminal.lines().last().cloned().unwrap_or_default()
}

#[test]
fn a_status_line_says_what_is_shown_and_whether_the_server_is_connected() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let mut live = watch(&rig, (120, 12), &["cm"]);
    live.until_shown(&format!("configmaps at {}, 1 row, connected", rig.server.url()));
    rig.config_map("b", "1");
    live.until_shown(", 2 rows, last change ");
    rig.runtime.block_on(rig.server.refuse());
    rig.server.cut();
    live.until_shown(", disconnected for ");
    assert!(status(&live).contains("retrying"), "{}", status(&live));
    rig.runtime.block_on(rig.server.accept());
    live.until_shown(", connected");
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn a_context_is_named_in_the_status_line() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let kubeconfig = rig.server.kubeconfig();
    std::fs::write(&file, &kubeconfig).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    let context = kubeconfig["current-context"].as_str().unwrap();
    let mut live = Live::start(120, 12, &["get", "cm", "--watch", "--kubeconfig", file.to_str().unwrap()]);
    live.until_shown(&format!("configmaps at {context}, 0 rows, connected"));
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn a_permission_that_is_taken_away_is_not_called_a_lost_connection() {
    let rule = || Rule::new().path("/api").path("/apis").path("/api/v1").path("/apis/*");
    let allowed = Rule::new().verb(Verb::List).verb(Verb::Watch).verb(Verb::Get).resource("", "configmaps");
    let rig = Rig::with(|builder| builder.access(Access::closed().allow(rule()).allow(allowed)));
    rig.config_map("a", "1");
    let mut live = watch(&rig, (160, 12), &["cm"]);
    live.until_shown(", connected");
    rig.server.set_access(Access::closed().allow(rule()));
    rig.server.cut();
    live.until_shown(", refused for ");
    assert!(live.terminal.lines().iter().any(|line| line.starts_with("a ")), "{:#?}", live.terminal);
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn the_age_stays_at_80_columns_and_hidden_columns_are_counted() {
    let rig = Rig::new();
    let name = "checkout-service-with-a-long-name-7d4b9c6f5-";
    rig.server.load(["abcde", "fghij"].map(|end| pod(&format!("{name}{end}"), "node-1"))).unwrap();
    let mut live = watch(&rig, (80, 12), &["pods", "-o", "wide", "-A"]);
    live.until(|lines| lines[2].contains("fghij") && lines.last().is_some_and(|line| line.contains(", connected")));
    let lines = live.terminal.lines();
    assert!(lines[0].contains("  AGE"), "{lines:#?}");
    assert!(status(&live).contains(" columns hidden, "), "{lines:#?}");
    // The ends of the names are what distinguishes them.
    assert!(lines[1].contains("…") && lines[1].contains("abcde ") && lines[2].contains("fghij "), "{lines:#?}");
    live.resize(200, 12);
    live.until(|lines| lines[0].contains("NODE") && !lines.iter().any(|line| line.contains("hidden")));
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn wide_characters_do_not_shift_the_columns() {
    let rig = Rig::with(|builder| builder.first_access(kube_embedded::FirstAccess::Served));
    rig.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "City", "type": "string", "jsonPath": ".spec.city"}, {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }));
    let widget = |name: &str, city: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": {"city": city, "size": 7}});
    rig.create(&widget("a", "東京都千代田区丸の内一丁目東京駅北口"));
    rig.create(&widget("b", "Rome"));
    let mut live = watch(&rig, (40, 8), &["widgets"]);
    live.until(|lines| lines.iter().any(|line| line.starts_with("b ")));
    // Columns of the terminal, where a wide character takes two.
    let column = |row: usize, letter: char| {
        let cells = live.terminal.cells();
        let at = cells[row].iter().rposition(|cell| cell.letter == letter).expect("it is there");
        cells[row][..at].iter().map(|cell| cell.width).sum::<usize>()
    };
    assert_eq!((column(0, 'S'), column(1, '7')), (column(2, '7'), column(2, '7')), "{:#?}", live.terminal);
    assert!(live.terminal.lines()[1].contains('…'), "{:#?}", live.terminal);
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn rows_are_filtered_sorted_and_scrolled_with_keys() {
    let rig = Rig::new();
    for number in 0..30 {
        rig.config_map(&format!("map-{number:02}"), "1");
    }
    let mut live = watch(&rig, (80, 10), &["cm"]);
    live.until_shown("map-00");
    live.keys("G");
    live.until_shown("map-29");
    assert!(!live.terminal.lines().iter().any(|line| line.contains("map-00")), "{:#?}", live.terminal);
    live.keys("/-1\r");
    live.until(|lines| {
        lines.iter().any(|line| line.contains("map-17")) && !lines.iter().any(|line| line.contains("map-29"))
    });
    assert!(status(&live).contains("/-1"), "{}", status(&live));
    live.keys("/\x1b");
    live.until_shown("map-29");
    live.keys("gsrg");
    live.until(|lines| lines[0].contains("NAME↑") && lines[1].starts_with("map-29"));
    live.keys("c");
    live.until_shown("changed first");
    rig.server.update(&config_map("map-07", "2")).unwrap();
    live.keys("rg");
    live.until(|lines| lines[1].starts_with("map-07"));
    live.keys("q");
    assert_eq!(live.end(), Some(0));
}
