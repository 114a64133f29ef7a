//! The `apiserver` command: runs the embedded API server on its own.
//!
//! `access` parses the token file and the access rules; `replay` serves recordings, to `top`, too.

mod access;
pub(crate) mod replay;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use jiff::SignedDuration;
use kube_embedded::Server;
use kube_embedded::pretend::{Pretend, Size};

use crate::args::Apiserver;
use crate::failure::Failure;
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::paint::When;
use crate::terminal::progress::Waiting;
use crate::terminal::stderr::stderr;
use crate::{kubeconfig_file, manifests, signals};
use replay::Recording;

pub(crate) async fn run(args: Apiserver) -> Result<(), Failure> {
    check_exposure(&args)?;
    let address = SocketAddr::new(args.bind_address, args.port);
    let mut builder = Server::builder().address(address).seed(args.seed);
    builder = match args.replay {
        // What the recording does not know may not be deleted for it.
        Some(_) => builder,
        None => builder.garbage_collection().namespace_deletion().bootstrap_objects(),
    };
    let mut token = None;
    if let Some(file) = &args.token_auth_file {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("--token-auth-file {}: {error}", file.display())))?;
        let known = access::read_tokens(&text).map_err(|why| Failure::Usage(format!("{}: {why}", file.display())))?;
        token = known.iter().find(|known| known.is_master()).or(known.first()).map(|known| known.token.clone());
        builder = builder.tls().access(access::access(known, &args.allow).map_err(Failure::Usage)?);
    }
    // Before the server starts: a signal during startup, too, ends the command with exit code 0.
    let mut end = std::pin::pin!(signals::ended());
    let waiting = Waiting::on(match args.pretend {
        true => format!("creating a simulated cluster of {} nodes", args.size),
        false => "starting".to_owned(),
    });
    let server = builder.start().await.map_err(|error| Failure::Other(format!("listening on {address}: {error}")))?;
    let cluster = tokio::select! {
        biased;
        () = &mut end => None,
        filled = fill(&args, &server) => Some(filled?),
    };
    drop(waiting);
    if let Some(cluster) = cluster {
        let kubeconfig = match &token {
            Some(token) => server.kubeconfig_for(token),
            None => server.kubeconfig(),
        };
        publish_kubeconfig(kubeconfig, args.write_kubeconfig.as_deref())?;
        stderr(&format!("serving on {}; Ctrl-C ends it", server.url()));
        warn_of_exposure(&args, &server);
        tokio::select! {
            biased;
            () = &mut end => {}
            failure = play(&args, &server) => return Err(failure),
        }
        if let Some(cluster) = cluster {
            cluster.stop().await;
        }
    }
    server.shutdown().await;
    Ok(())
}

/// Refuses to serve other machines without authentication, unless that is requested explicitly.
fn check_exposure(args: &Apiserver) -> Result<(), Failure> {
    let is_local = args.bind_address.to_canonical().is_loopback();
    if is_local || args.token_auth_file.is_some() || args.no_authentication {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--bind-address {}: other machines can reach this address, and without tokens all their requests are allowed; \
         add --token-auth-file FILE, or --no-authentication if that is intended",
        args.bind_address
    )))
}

/// Says which addresses other machines can reach.
fn warn_of_exposure(args: &Apiserver, server: &Server) {
    if args.bind_address.to_canonical().is_loopback() {
        return;
    }
    let port = server.url().rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let address = match args.bind_address.is_unspecified() {
        true => format!("every address of this machine, port {port}"),
        false => format!("{} port {port}", args.bind_address),
    };
    let who = if args.no_authentication { "anyone can read and change everything" } else { "a token is needed" };
    stderr(&format!("! other machines can reach the server: it listens on {address}; {who}"));
}

/// Plays a recording, if that is asked for. Completes only with a failure.
async fn play(args: &Apiserver, server: &Server) -> Failure {
    let played = match (&args.replay, args.speed) {
        (Some(file), Some(speed)) => match Recording::read(file) {
            Ok(recording) => recording.play(server, speed).await,
            Err(failure) => Err(failure),
        },
        _ => Ok(()),
    };
    match played {
        Ok(()) => std::future::pending().await,
        Err(failure) => failure,
    }
}

/// Loads the manifests and starts the simulated cluster, as requested by the arguments.
async fn fill(args: &Apiserver, server: &Server) -> Result<Option<Pretend>, Failure> {
    if let Some(directory) = &args.load {
        for object in manifests::read_all(directory)? {
            let name = format!(
                "{} {}",
                object["kind"].as_str().unwrap_or("an object without a kind"),
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            match server.load([object]) {
                Ok(_) => {}
                // Namespaces that the server creates itself, such as `default`.
                Err(status) if status.code() == 409 && name.starts_with("Namespace ") => {}
                Err(status) => return Err(Failure::Other(format!("loading {name}: {}", status.message()))),
            }
        }
    }
    if let Some(file) = &args.replay {
        let recording = Recording::read(file)?;
        match (args.speed, recording.end()) {
            (None, Some(end)) => {
                let before = SignedDuration::try_from(args.before_end.unwrap_or_default()).unwrap_or_default();
                recording.load_at(server, end.checked_sub(before).unwrap_or(end))?;
            }
            _ => recording.load_beginning(server)?,
        }
    }
    if !args.pretend {
        return Ok(None);
    }
    let size = Size::of_nodes(args.size);
    let cluster = Pretend::builder().size(size).rate(args.rate).seed(args.seed).start(server).await;
    cluster.map(Some).map_err(|status| Failure::Other(format!("creating the simulated cluster: {}", status.message())))
}

/// Prints the kubeconfig, or writes it to the file.
fn publish_kubeconfig(kubeconfig: String, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else {
        let mut out = Output::new(When::Never);
        out.document(&Document::own(kubeconfig))?;
        return Ok(out.flush()?);
    };
    kubeconfig_file::publish(&kubeconfig, file)
        .map_err(|error| Failure::Other(format!("--write-kubeconfig {}: {error}", file.display())))
}
