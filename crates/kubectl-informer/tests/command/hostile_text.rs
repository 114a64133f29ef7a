//! Nothing that a server sends acts on the terminal.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::hostile_server::{HOSTILE, HostileServer};
use crate::support::pty::Live;
use crate::support::{Ran, command};

/// Every form of `get`, with the kind it is asked for.
const KINDS: [&str; 5] = ["pods", "events", "configmaps", "widgets", "odd"];

/// Fails if a character acts on a terminal or hides text, line breaks excepted.
#[track_caller]
fn assert_harmless(text: &str, what: &dyn std::fmt::Debug) {
    let hidden = |c: &char| *c != '\n' && (c.is_control() || (!c.is_ascii() && *c != '…' && HOSTILE.contains(*c)));
    assert_eq!(text.chars().find(hidden), None, "{what:?}: {text:?}");
}

/// As [`assert_harmless`], after colours are removed.
#[track_caller]
fn assert_coloured(text: &str, what: &dyn std::fmt::Debug) {
    let mut rest = text.to_owned();
    for code in ["0", "1", "2", "7", "31", "32", "33"] {
        rest = rest.replace(&format!("\x1b[{code}m"), "");
    }
    assert!(rest.len() < text.len(), "{what:?}: no colours: {text:?}");
    assert_harmless(&rest, what);
}

#[test]
fn no_form_of_get_lets_a_control_character_through() {
    let server = HostileServer::start();
    for kind in KINDS {
        for form in ["table", "wide", "name"] {
            let ran = Ran::of(&mut server.command(&["get", kind, "-A", "-o", form])).succeeded();
            assert!(ran.out.contains(r"\u{1b}[2J"), "{kind} {form}: {ran:#?}");
            assert!(ran.out.lines().count() <= 2, "a row is one line: {kind} {form}: {ran:#?}");
            assert_harmless(&ran.out, &(kind, form));
            assert_harmless(&ran.err, &(kind, form));
        }
    }
}

#[test]
fn json_and_yaml_escape_control_characters_and_keep_every_value() {
    let server = HostileServer::start();
    let name = format!("a{HOSTILE}");
    for kind in KINDS {
        let json = Ran::of(&mut server.command(&["get", kind, "-o", "json"])).succeeded().out;
        assert_harmless(&json, &kind);
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["items"][0]["metadata"]["name"], name);
        let yaml = Ran::of(&mut server.command(&["get", kind, "-o", "yaml"])).succeeded().out;
        assert_harmless(&yaml, &kind);
        assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), value);
    }
}

#[test]
fn no_form_of_watch_lets_a_control_character_through() {
    let server = HostileServer::start();
    for kind in KINDS {
        for form in
            [&["-o", "line"][..], &["-o", "wide"], &["-o", "name"], &["-o", "json"], &["-o", "yaml"], &["--diff"]]
        {
            let args = [&["watch", kind, "-A", "--until", "count=2"], form].concat();
            let out = follow(&server, &args);
            assert!([r"\u{1b}", r"\u001b"].iter().any(|shown| out.contains(shown)), "{kind} {form:?}: {out}");
            assert_harmless(&out, &(kind, form));
        }
        let out = follow(&server, &["watch", kind, "-A", "--until", "count=2", "--diff", "--color", "always"]);
        assert_coloured(&out, &kind);
    }
}

/// Runs `watch` for an addition and an update; returns its output.
fn follow(server: &HostileServer, args: &[&str]) -> String {
    let mut child =
        server.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut out = String::new();
    reader.read_line(&mut out).unwrap();
    server.change();
    reader.read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {out}");
    out
}

#[test]
fn a_live_table_draws_with_sequences_of_its_own_only() {
    let server = HostileServer::start();
    for kind in KINDS {
        let mut live = Live::start(1_000, 20, &["get", kind, "-A", "--watch", "--server", server.url()]);
        live.until(|lines| lines.iter().any(|line| line.contains(r"\u{1b}[2J")));
        let before = live.terminal.lines();
        server.change();
        // The tables of config maps and events show nothing of what changes.
        if kind == "pods" || kind == "widgets" {
            live.until(|lines| lines.iter().any(|line| line.contains(r"\u{1b}[2J") && !before.contains(line)));
        }
        assert_eq!(live.interrupt(), Some(0));
        assert_drawing(&live, &kind);
    }
}

#[test]
fn no_view_of_top_lets_a_control_character_through() {
    let server = HostileServer::prompt();
    let kinds = "pods,events,configmaps,widgets,odd,refused";
    for size in [(80, 24), (200, 50)] {
        let mut live = Live::start(size.0, size.1, &["top", kinds, "-A", "--server", server.url()]);
        live.until_shown(r"a\u{");
        server.change();
        live.until(|lines| lines.iter().any(|line| line.contains("Z ~ ")));
        live.keys("\r");
        for (tab, shown) in [("2", "only kinds that top shows"), ("3", r"\u{1b}[2J"), ("4", "Z ~ "), ("1[", "as of ")] {
            live.keys(tab);
            live.until_shown(shown);
        }
        live.keys("\x1b");
        live.until_gone("4 history");
        live.keys("?");
        live.until_shown("Any key closes this.");
        // The other kinds, to the one that is refused.
        live.keys("x\t");
        for _ in 0..5 {
            live.keys("j\r\t");
        }
        live.until_shown("refused: ");
        live.keys("q");
        assert_eq!(live.end(), Some(0));
        assert_drawing(&live, &size);
    }
}

#[test]
fn no_tree_lets_a_control_character_through() {
    let server = HostileServer::prompt();
    for color in ["never", "always"] {
        let ran = Ran::of(&mut server.command(&["tree", "pods/a", "--color", color])).succeeded();
        assert!(ran.out.contains(r"/a\u{1b}[2J"), "{ran:#?}");
        if color == "always" {
            assert_coloured(&ran.out, &color);
        } else {
            assert_harmless(&ran.out, &color);
        }
        assert!(ran.err.contains(" kinds cannot be listed: "), "{ran:#?}");
        assert_harmless(&ran.err, &color);
    }
    let mut live = Live::start(500, 20, &["tree", "pods/a", "--watch", "--server", server.url()]);
    live.until_shown(r"/a\u{1b}[2J");
    live.keys("q");
    assert_eq!(live.end(), Some(0));
    assert_drawing(&live, &"tree");
}

#[test]
fn no_history_lets_a_control_character_through() {
    let server = HostileServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    let path = file.to_str().unwrap();
    follow(&server, &["watch", "pods", "-A", "--until", "count=2", "--record", path]);
    for form in [&["--diff"][..], &["-o", "json"], &["-o", "yaml"], &["-o", "wide", "--timestamps"], &["--since", "1h"]]
    {
        let ran = Ran::of(command(&["watch", "pods", "--replay", path]).args(form)).succeeded();
        assert!([r"\u{1b}", r"\u001b"].iter().any(|shown| ran.out.contains(shown)), "{form:?}: {ran:#?}");
        assert_harmless(&ran.out, &form);
        assert_harmless(&ran.err, &form);
    }
    let ran = Ran::of(&mut server.command(&["watch", "pods", "-A", "--since", "1h", "--until", "synced"])).succeeded();
    assert!(ran.out.contains(r"\u{1b}[2J"), "{ran:#?}");
    assert_harmless(&ran.out, &"since");
    // Such objects are not valid, which is an error that quotes them.
    let ran = Ran::of(&mut command(&["apiserver", "--replay", path]));
    assert_harmless(&ran.out, &"apiserver");
    assert_harmless(&ran.err, &"apiserver");
    let ran = Ran::of(&mut command(&["watch", HOSTILE.replace('\0', "").as_str(), "--replay", path]));
    assert_harmless(&ran.err, &"an unknown kind");
}

/// As [`assert_harmless`], after the sequences of a live view are removed.
#[track_caller]
fn assert_drawing(live: &Live, what: &dyn std::fmt::Debug) {
    // Cursor, erasing, colours, the alternate screen: what ratatui and crossterm write.
    let own = regex::Regex::new("\x1b\\[(\\d+;\\d+H|\\d*[ABCDGJK]|[\\d;]*m|\\?(25|1049)[hl])|\x1b\\[6n").unwrap();
    let text = String::from_utf8(live.raw.clone()).unwrap().replace("\r\n", "\n");
    assert!(text.contains('\x1b'), "{what:?}: no drawing: {text:?}");
    assert_harmless(&own.replace_all(&text, ""), what);
}

#[test]
fn progress_failures_and_errors_are_harmless() {
    let server = HostileServer::start();
    let mut live = Live::start(300, 20, &["get", "slow", "--server", server.url()]);
    live.until(|lines| lines.iter().any(|line| line.starts_with("slow: ") && line.contains("objects so far")));
    assert_eq!(live.interrupt(), None);
    assert_harmless(&String::from_utf8(live.raw.clone()).unwrap().replace("\r\x1b[K", ""), &"progress");

    let ran = Ran::of(&mut server.command(&["get", "refused"]));
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.err.contains(r"\u{1b}[2J"), "{ran:#?}");
    assert_harmless(&ran.err, &"refused");

    let mut child = server.command(&["watch", "failing"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("! failing") && line.contains(r"\u{1b}[2J"), "{line}");
    assert_harmless(&line, &"failing");

    // Cannot be requested at all.
    let ran = Ran::of(&mut server.command(&["watch", "unusable"]));
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.err.contains(r"\u{1b}[2J"), "{ran:#?}");
    assert_harmless(&ran.err, &"unusable");
}

#[test]
fn arguments_and_kubeconfigs_are_quoted_harmlessly() {
    let server = HostileServer::start();
    let hostile = HOSTILE.replace('\0', "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("config{hostile}"));
    let quoted = serde_json::to_string(&hostile).unwrap();
    fs::write(&file, format!("{{\"current-context\": {quoted}, \"contexts\": [], \"clusters\": [], \"users\": []}}"))
        .unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["get", hostile.as_str()][..],
        &["get", "pods", &hostile],
        &["get", "pods", "--where", &hostile],
        &["get", "pods", "--where", &format!("metadata.name + {hostile:?} > 1")],
        &["get", "pods", "--where", "metadata.name.matches(metadata.name + '[')"],
        &["get", "pods", "--where", "int(metadata.name) > 1"],
        &["get", "pods", "-n", &hostile],
        &["get", "unusable", "--request-timeout", "1h"],
        &["watch", "pods", "-l", &hostile],
        &["watch", "pods", "--until", &hostile],
        &[&hostile],
        &["get", "pods", "--kubeconfig", file],
        &["get", "pods", "--context", &hostile],
    ] {
        let ran = Ran::of(&mut server.command(args));
        assert_ne!(ran.code, Some(0), "{args:?}: {ran:#?}");
        assert!(!ran.err.is_empty(), "{args:?}: {ran:#?}");
        assert_harmless(&ran.out, &args);
        assert_harmless(&ran.err, &args);
    }
    let ran = Ran::of(command(&["get", "pods", "--server"]).arg(&hostile));
    assert_harmless(&ran.err, &"a server");
    let ran = Ran::of(&mut command(&["completions", "--words", &hostile]));
    assert_harmless(&ran.out, &"completions");
}

#[test]
fn only_the_sinks_write_to_standard_output_and_standard_error() {
    fn scan(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                scan(&path, found);
                continue;
            }
            // Beside the program there is the script of its completions.
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            if ["io::stdout", "io::stderr", "print!(", "println!(", ".print()", "dbg!(", "/dev/"]
                .iter()
                .any(|word| text.contains(word))
            {
                found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    scan(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.sort();
    // The full screen draws styled lines only.
    assert_eq!(found, ["fullscreen.rs", "output.rs", "stderr.rs"], "what is written elsewhere is not made visible");
}
