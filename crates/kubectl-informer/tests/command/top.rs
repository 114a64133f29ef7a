//! `top`, the full-screen view, and its pictures in the documentation.
//!
//! With `KUBECTL_INFORMER_SCREENS=1` (`just screens`), the pictures are written.

use std::fs;
use std::path::Path;

use crate::support::pty::Live;
use crate::support::{Rig, command, config_map, svg};
use crate::tree;
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule};
use kube_embedded::pretend::{Pretend, Size};
use serde_json::{Value, json};

fn top(rig: &Rig, size: (u16, u16), args: &[&str]) -> Live {
    let url = rig.server.url();
    Live::start(size.0, size.1, &[&["top", "--server", &url], args].concat())
}

/// A deployment with pods, an event about one of them, and a config map.
fn rig() -> Rig {
    let rig = Rig::new();
    tree::load(&rig);
    let pod = rig.server.objects("v1", "Pod").unwrap().get("web-2-c").unwrap();
    rig.create(&json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web-2-c.1", "namespace": "default"},
        "type": "Warning", "reason": "BackOff", "message": "back-off restarting failed container", "count": 7,
        "involvedObject": {"kind": "Pod", "name": "web-2-c", "namespace": "default", "uid": pod["metadata"]["uid"]},
    }));
    rig.config_map("a", "1");
    rig
}

fn written(value: &str, manager: &str) -> Value {
    let mut map = config_map("a", value);
    map["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}}]);
    map
}

fn row<'l>(lines: &'l [String], start: &str) -> &'l str {
    lines.iter().find(|line| line.starts_with(start)).map_or("", String::as_str)
}

#[test]
fn kinds_objects_and_what_happens_are_on_one_screen() {
    let rig = rig();
    let mut live = top(&rig, (80, 24), &[]);
    let counts = [("pods", "3"), ("deployments", "1"), ("replicasets", "2"), ("configmaps", "1"), ("events", "1")];
    live.until(|lines| {
        let count = |kind: &str| row(lines, &format!("{kind} ")).split_whitespace().nth(1).map(str::to_owned);
        counts.iter().all(|(kind, number)| count(kind).as_deref() == Some(number))
            && lines[23].starts_with("pods: 3 rows, ")
            && lines[23].contains("connected")
    });
    let lines = live.terminal.lines();
    let head = row(&lines, "KIND ");
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns[..8], ["KIND", "COUNT", "EV/S", "NAME", "READY", "STATUS", "RESTARTS", "AGE"], "{lines:#?}");
    assert!(lines[0].starts_with("kubectl informer top ") && lines[0].ends_with("? help"), "{lines:#?}");

    // What happens is shown field by field, with the manager.
    rig.server.update(&written("2", "editor")).unwrap();
    live.until_shown("~ configmap default/a  data.k 1→2");
    live.until_shown("    data.k: 1 → 2  (editor)");
    // The kinds have their sizes while keys move there.
    live.keys("\t");
    live.until(|lines| row(lines, "KIND ").contains(" SIZE "));
    assert!(row(&live.terminal.lines(), "pods ").contains("kB "), "{:#?}", live.terminal);
    live.keys("jjjjjjj\r");
    live.until(|lines| row(lines, "KIND ").ends_with("NAME  DATA  AGE") && !row(lines, "KIND ").contains("SIZE"));
    live.keys("q");
    assert_eq!(live.end(), Some(0));
    assert!(!live.terminal.is_alternate() && !live.terminal.cursor_hidden());
}

#[test]
fn rows_are_filtered_by_text_and_by_expression_and_sorted() {
    let rig = rig();
    let mut live = top(&rig, (120, 24), &["pods"]);
    let shown = |lines: &[String]| {
        let names = lines.iter().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("web-2-")));
        names.map(|name| name.trim_start_matches("web-2-").to_owned()).collect::<Vec<_>>().join("")
    };
    live.until(|lines| shown(lines) == "abc");
    live.keys("/crash\r");
    live.until(|lines| shown(lines) == "c" && row(lines, "pods: ").contains(", /crash, "));
    live.keys("/\x1b");
    live.until(|lines| shown(lines) == "abc");
    live.keys("wmetadata.name ==\r");
    live.until(|lines| !lines[23].starts_with("where ") && !lines[23].starts_with("pods: "));
    live.keys(" 'web-2-b'\r");
    live.until(|lines| shown(lines) == "b" && row(lines, "pods: ").contains("where metadata.name == 'web-2-b'"));
    live.keys("w");
    live.until(|lines| lines[23].starts_with("where "));
    live.keys("\x1b");
    live.until(|lines| lines[23].starts_with("pods: "));
    let back = "\x7f".repeat("metadata.name == 'web-2-b'".len());
    live.keys(&format!("w{back}\r"));
    live.until(|lines| shown(lines) == "abc");
    live.keys("sr");
    live.until(|lines| shown(lines) == "cba" && row(lines, "KIND ").contains("NAME↑"));
    live.keys("?");
    live.until_shown("show only objects for which a CEL expression is true");
    live.keys("?");
    live.until_gone("Any key closes this.");
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn an_expression_hides_a_row_when_only_values_outside_the_cells_change() {
    let rig = rig();
    let mut live = top(&rig, (100, 24), &["cm"]);
    live.until(|lines| row(lines, "configmaps: ").contains(", connected"));
    let is_shown = |lines: &[String]| lines.iter().any(|line| line.split_whitespace().any(|word| word == "a"));
    live.until(is_shown);
    live.keys("wdata.k == '1'\r");
    live.until(|lines| row(lines, "configmaps: ").contains("where data.k == '1'") && is_shown(lines));
    rig.server.update(&written("2", "editor")).unwrap();
    live.until(|lines| lines.iter().any(|line| line.contains("data.k 1→2")) && !is_shown(lines));
    rig.server.update(&written("1", "editor")).unwrap();
    live.until(is_shown);
    live.keys("q");
    assert_eq!(live.end(), Some(0));
}

#[test]
fn an_object_is_shown_with_its_changes_tree_events_and_history() {
    let rig = rig();
    let mut live = top(&rig, (80, 24), &["pods,replicasets,deployments,events,cm"]);
    live.until_shown("web-2-c");
    live.keys("G\r");
    live.until(|lines| lines.iter().any(|line| line.starts_with("pod default/web-2-c ")));
    live.keys("2");
    live.until_shown("   └─ pod/web-2-c  CrashLoopBackOff 0/1");
    assert!(!row(&live.terminal.lines(), "deployment/web  2/3 ready").is_empty(), "{:#?}", live.terminal);
    live.keys("3");
    live.until_shown("BackOff ×7  back-off restarting failed container");
    live.keys("4");
    live.until_shown("no changes since the start");
    live.keys("\x1b");
    live.until_shown("KIND ");

    live.keys("\tjjjj\r\r");
    live.until_shown("configmap default/a ");
    rig.server.update(&written("2", "editor")).unwrap();
    rig.server.update(&written("3", "robot")).unwrap();
    live.until(|lines| !row(lines, "  k: \"3\"").is_empty());
    // The lines that the last change wrote are marked.
    let marked: Vec<String> = live
        .terminal
        .cells()
        .iter()
        .take(17)
        .skip(2)
        .map(|cells| cells.iter().filter(|cell| cell.colour.0 == 7).map(|cell| cell.letter).collect::<String>())
        .filter(|text| !text.trim().is_empty())
        .collect();
    assert!(marked.iter().any(|line| line.trim() == "k: \"3\""), "{marked:?}: {:#?}", live.terminal);
    assert!(!marked.iter().any(|line| line.contains("kind")), "{marked:?}");
    live.keys("[");
    live.until(|lines| !row(lines, "as of ").is_empty() && !row(lines, "  k: \"2\"").is_empty());
    assert!(
        row(&live.terminal.lines(), "as of ").ends_with(", 1 change ago; [ is earlier, ] later"),
        "{:#?}",
        live.terminal
    );
    live.keys("[");
    live.until(|lines| !row(lines, "  k: \"1\"").is_empty());
    live.keys("]]");
    live.until(|lines| !row(lines, "  k: \"3\"").is_empty());
    live.keys("4");
    live.until(|lines| {
        lines[2].ends_with("~ configmap default/a  data.k 2→3") && lines[3] == "    data.k: 2 → 3  (robot)"
    });
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    live.keys("1");
    live.until_shown("deleted; the last state:");
    live.keys("q");
    assert_eq!(live.end(), Some(0));
}

#[test]
fn a_refused_kind_and_a_lost_server_are_shown() {
    let paths = || Rule::new().path("/api").path("/apis");
    let maps = Rule::new().verb(Verb::List).verb(Verb::Watch).verb(Verb::Get).resource("", "configmaps");
    let rig = Rig::with(|builder| builder.access(Access::closed().allow(paths()).allow(maps)));
    rig.config_map("a", "1");
    let mut live = top(&rig, (160, 24), &["cm,secrets"]);
    live.until(|lines| lines[23].starts_with("configmaps: 1 row, ") && lines[23].contains(" connected"));
    live.until(|_| true);
    live.keys("\tj");
    live.until(|lines| lines[23].starts_with("secrets: 0 rows, refused for "));
    live.keys("k");
    rig.runtime.block_on(rig.server.refuse());
    rig.server.cut();
    live.until(|lines| lines[23].starts_with("configmaps: 1 row, ") && lines[23].contains("disconnected for "));
    assert!(live.terminal.lines().iter().any(|line| line.contains(" a  ")), "the rows stay: {:#?}", live.terminal);
    rig.runtime.block_on(rig.server.accept());
    live.until(|lines| lines[23].contains(" connected"));
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn what_top_shows_can_be_recorded() {
    let rig = rig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    let mut live = top(&rig, (80, 24), &["cm", "--record", file.to_str().unwrap()]);
    live.until(|lines| row(lines, "configmaps ").contains(" 1 "));
    rig.server.update(&config_map("a", "2")).unwrap();
    live.until_shown("data.k 1→2");
    live.keys("q");
    assert_eq!(live.end(), Some(0));
    let replayed = crate::support::Ran::of(command(&["watch", "cm", "--replay"]).arg(&file)).succeeded();
    assert_eq!(replayed.out, "+ configmap default/a\n~ configmap default/a  data.k 1→2\n");
}

/// The screens of the documentation: the table, and an open object.
#[test]
fn the_screen_fits_at_every_size() {
    let rig = Rig::new();
    let size = Size::of_nodes(3);
    let cluster = rig.runtime.block_on(Pretend::builder().size(size).rate(20.0).seed(1).start(&rig.server)).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/screens");
    let is_written = std::env::var_os("KUBECTL_INFORMER_SCREENS").is_some();
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        let last = usize::from(height) - 1;
        let changes =
            |lines: &[String]| lines.iter().filter(|line| line.contains("Z ~ ") || line.contains("Z + ")).count();
        let is_busy =
            |lines: &[String]| row(lines, "pods ").split_whitespace().nth(2).is_some_and(|rate| rate != "0.0");
        // The table; then the object that changed last.
        for (name, keys) in [("top", ""), ("top-object", "cg\r")] {
            let mut live = top(&rig, (width, height), &["-A"]);
            live.until(|lines| changes(lines) > 1 && is_busy(lines) && lines[last].contains(", connected"));
            live.keys(keys);
            if !keys.is_empty() {
                live.until(|lines| lines[last].starts_with("esc back"));
            }
            live.keys("q");
            assert_eq!(live.end(), Some(0));
            let screen = live.last_screen(width, height);
            let lines = screen.lines();
            match keys {
                "" => check_table(&lines, width, height),
                _ => check_object(&lines, width),
            }
            let picture = svg::draw(&screen, usize::from(width));
            let file = folder.join(format!("{name}-{width}x{height}.svg"));
            if is_written {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, picture).unwrap();
            } else {
                // Another moment, the same size.
                let kept = fs::read_to_string(&file).expect("the picture is in the documentation");
                let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
                assert_eq!(first(&kept), first(&picture), "{}: run `just screens`", file.display());
            }
        }
    }
    rig.runtime.block_on(cluster.stop());
}

fn check_object(lines: &[String], width: u16) {
    assert!(lines.iter().any(|line| line.contains("apiVersion: v1")), "{lines:#?}");
    // On a large screen, the tree and the rest stand beside the object.
    assert_eq!(lines.iter().any(|line| line.contains("─ tree ─")), width == 200, "{lines:#?}");
}

/// Every part of the screen is there.
fn check_table(lines: &[String], width: u16, height: u16) {
    let head = row(lines, "KIND ");
    for column in ["NAMESPACE", " NAME ", "STATUS", "AGE"] {
        assert!(head.contains(column), "{width}x{height}: {column}: {lines:#?}");
    }
    assert_eq!(head.contains("SIZE"), width > 110, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("─ changes ─")), "{width}x{height}: {lines:#?}");
    assert!(lines[0].contains("all namespaces") && lines[0].ends_with("? help"), "{width}x{height}: {lines:#?}");
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= usize::from(width) && lines.len() == usize::from(height), "{lines:#?}");
}
