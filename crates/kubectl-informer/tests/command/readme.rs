//! The program and the commands of the README work.

use std::error::Error;
use std::fs;

use crate::support::{Ran, Rig, Running, command};
use k8s_openapi::api::apps::v1::Deployment;
use kube_informer::{Event, Informer};
use serde_json::json;

#[rustfmt::skip]
#[expect(clippy::print_stdout, reason = "so does the README")]
async fn first_program(client: kube::Client) -> Result<(), Box<dyn Error>> {
    // From here on as in the README.
    // Watch Deployments, print what happens, list from the cache.
    let deployments = Informer::<Deployment>::builder(client).namespace("kube-system").build();
    let printer = deployments.on_event(|event| match event {
        Event::Added { object, .. } => println!("+ {}", object.name()),
        Event::Updated { old, new, .. } => println!("~ {} {} -> {}", new.name(), old.version(), new.version()),
        Event::Deleted { last, .. } => println!("- {}", last.name()),
    });
    deployments.start();
    printer.synced().await?;                       // the cache is complete, and the printer has received all of it
    for d in deployments.lister().namespace("kube-system").list() {
        println!("{} wants {:?}", d.name(), d.get()?.spec.replicas);
    }
    // So far.
    Ok(())
}

fn readme() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("the README is there")
}

#[test]
fn the_first_program_of_the_readme_is_one_that_runs() {
    let own = include_str!("readme.rs");
    let (_, own) = own.split_once("as in the README.\n").expect("a beginning");
    let (own, _) = own.split_once("    // So far.").expect("an end");
    let readme = readme();
    let (_, shown) = readme.split_once("```rust\n").expect("a program");
    let (shown, _) = shown.split_once("```").expect("its end");
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(shown), lines(own));

    let rig = Rig::new();
    rig.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "dns", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "dns"}}, "template": {"metadata": {"labels": {"app": "dns"}},
            "spec": {"containers": [{"name": "dns", "image": "dns"}]}}},
    }));
    rig.runtime.block_on(async {
        let config = kube::Config::new(rig.server.url().parse().expect("an address"));
        first_program(kube_informer::client(config).expect("a client")).await.expect("it runs");
    });
}

/// Splits a shell command into words; single quotes group.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars().chain([' ']) {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            letter => word.push(letter),
        }
    }
    words
}

#[test]
fn every_command_of_the_readme_runs() {
    let readme = readme();
    let lines = readme.lines().filter_map(|line| line.strip_prefix("$ kubectl informer "));
    let commands: Vec<Vec<String>> = lines.map(|line| words(line.split("  #").next().unwrap_or(line).trim())).collect();
    assert!(commands.len() > 4, "{commands:?}");

    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("pretend.yaml");
    let is_server = |words: &&Vec<String>| words[0] == "apiserver";
    let mut serve: Vec<&str> = commands.iter().find(is_server).expect("a server").iter().map(String::as_str).collect();
    let file = serve.iter().position(|word| *word == "--write-kubeconfig").expect("a kubeconfig") + 1;
    serve[file] = kubeconfig.to_str().expect("UTF-8");
    let mut server = Running::start(command(&serve).args(["--size", "2"]));
    assert!(server.error_line().starts_with("serving on "));

    for shown in commands.iter().filter(|words| !is_server(words)) {
        let mut args: Vec<&str> = shown.iter().map(String::as_str).collect();
        match args[0] {
            "watch" => args.extend(["--until", "synced"]),
            "get" if args.contains(&"--watch") => args.extend(["--for", "100ms"]),
            _ => {}
        }
        let ran = Ran::of(command(&args).arg("--kubeconfig").arg(&kubeconfig)).succeeded();
        assert!(!ran.out.is_empty() || ran.err.contains("nothing found"), "{shown:?}: {ran:#?}");
    }
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));
}
