//! End-to-end tests of the `demo` command, with a pipe and with a terminal.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::pty::Live;
use crate::support::{Ran, Running, command};

#[test]
fn into_a_pipe_it_prints_what_happens_and_a_summary() {
    let mut demo = Running::start(&mut command(&["demo", "--size", "2", "--rate", "40"]));
    assert_eq!(demo.line(), "2 nodes, 60 pods, 40 writes/s, seed 1");
    let hint = demo.line();
    assert!(hint.starts_with("in a second terminal: kubectl --kubeconfig /"), "{hint}");
    let mut wanted = vec!["+ event ", "~ pod ", "# 00:0"];
    while !wanted.is_empty() {
        let line = demo.line();
        assert!(!line.contains('\x1b'), "no colours and no drawing: {line}");
        wanted.retain(|sign| !line.starts_with(sign));
    }
    demo.signal("INT");
    let (code, rest, err) = demo.read_to_end();
    assert_eq!(code, Some(0), "{err}");
    let pods = rest.iter().rfind(|line| line.starts_with("pods ")).expect("a line about pods");
    let fields: Vec<&str> = pods.split_whitespace().collect();
    assert_eq!(fields[1], "synced");
    assert_eq!(fields.last(), Some(&"1"), "one request did it: {pods}");
    assert!(rest.last().is_some_and(|last| last.contains(" updated, ") && last.contains("from ")), "{rest:#?}");
}

#[test]
fn on_a_terminal_it_redraws_in_place() {
    let mut demo = Live::start(100, 24, &["demo", "--size", "2", "--rate", "40"]);
    let count = |lines: &[String], sign: &str| lines.iter().filter(|line| line.starts_with(sign)).count();
    demo.until(|lines| count(lines, "~ pod ") > 0 && count(lines, "total ") > 0);
    assert_eq!(demo.interrupt(), Some(0));
    let lines = demo.terminal.lines();
    assert!(!demo.terminal.cursor_hidden());
    assert_eq!(count(&lines, "INFORMER "), 1, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(" deleted in ")), "{lines:#?}");
}

#[test]
fn it_ends_by_itself_and_its_kubeconfig_with_it() {
    let ran = Ran::of(&mut command(&["demo", "--size", "1", "--rate", "0", "--for", "10ms"])).succeeded();
    let file = ran.out.lines().nth(1).and_then(|line| line.split_whitespace().find(|word| word.ends_with(".yaml")));
    let file = Path::new(file.expect("a file"));
    assert!(!file.exists());
}

/// The files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_signal_during_start_leaves_no_kubeconfig() {
    for signal in ["INT", "TERM"] {
        for is_written in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let mut demo = Running::start(command(&["demo", "--size", "100"]).env("TMPDIR", folder.path()));
            let mut line = String::new();
            BufReader::new(demo.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert!(line.starts_with("creating a simulated cluster"), "{line}");
            while is_written && files(folder.path()).is_empty() {
                std::thread::yield_now();
            }
            demo.signal(signal);
            assert_eq!(demo.end().0, Some(0), "{signal}, written: {is_written}");
            assert!(files(folder.path()).is_empty(), "{signal}, written: {is_written}");
        }
    }
}

#[test]
fn the_kubeconfig_is_readable_by_its_owner_only_and_its_name_cannot_be_foreseen() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Running::start(command(&["demo", "--size", "1"]).env("TMPDIR", folder.path()));
    demo.line();
    let hint = demo.line();
    let found = files(folder.path());
    let [file] = found.as_slice() else { panic!("{found:?}") };
    assert!(hint.contains(file.to_str().unwrap()), "{hint}");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!file.to_str().unwrap().contains(&demo.child.id().to_string()), "{file:?}");
    demo.signal("TERM");
    assert_eq!(demo.end().0, Some(0));
    assert!(files(folder.path()).is_empty());
}
