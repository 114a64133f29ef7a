//! Websites for a controller.
//!
//! `watches N` waits until the controller has that many watches; `create` and `change` write all
//! websites and wait until the status of each has the generation that was written; `requests`
//! counts; `check` compares all children with what they are to be.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use kube_embedded::Server;
use rig::websites::{Website, definition, image, namespace, website};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Error;

/// How long a phase may take.
const LONGEST: Duration = Duration::from_secs(600);

/// The server, and how far the websites are.
pub struct Cluster {
    server: Server,
    count: u64,
    /// How many websites have reached each generation; that of one website never goes back.
    reached: watch::Receiver<Vec<u64>>,
    generation: i64,
}

impl Cluster {
    pub async fn start(count: u64) -> Result<Self, Error> {
        // The controllers are not slowed down by a server that forgets what they have not read yet.
        let server = Server::builder().history(200_000).watch_backlog(200_000).start().await?;
        server.create(&definition())?;
        for nth in 0..50 {
            let metadata = json!({"name": namespace(nth)});
            server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))?;
        }
        let (sender, reached) = watch::channel(Vec::new());
        tokio::spawn(follow(Client::new(server.service(), "default"), sender));
        server.until(|server| server.watches().len() == 1).await;
        Ok(Self { server, count, reached, generation: 0 })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub async fn obey(&mut self, line: &str) -> Result<Value, Error> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["watches", number] => {
                // One is the server's own.
                let wanted = 1 + number.parse::<usize>()?;
                timeout(LONGEST, self.server.until(|server| server.watches().len() >= wanted)).await?;
                Ok(json!({}))
            }
            ["create"] => {
                let start = Instant::now();
                for nth in 0..self.count {
                    self.server.create(&website(nth))?;
                    // Creating all of them occupies this thread only.
                    tokio::task::yield_now().await;
                }
                self.done(start).await
            }
            ["change"] => {
                let start = Instant::now();
                let change = json!({"spec": {"image": image(self.generation + 1)}});
                for nth in 0..self.count {
                    let sites = self.server.objects("example.com/v1", "Website")?.namespace(&namespace(nth));
                    sites.patch(&format!("site-{nth:06}"), &change)?;
                    tokio::task::yield_now().await;
                }
                self.done(start).await
            }
            ["requests"] => Ok(json!({"requests": self.server.request_count() as f64})),
            ["check"] => self.check(),
            _ => Err(format!("no such command: {line}").into()),
        }
    }

    /// Waits until all websites have the next generation.
    async fn done(&mut self, start: Instant) -> Result<Value, Error> {
        self.generation += 1;
        let (generation, count) = (self.generation, self.count);
        let number = |reached: &Vec<u64>| reached.get(generation as usize).copied().unwrap_or(0);
        let mut reached = self.reached.clone();
        let waited = timeout(LONGEST, reached.wait_for(|reached| number(reached) == count)).await;
        if waited.is_err() {
            let reached = number(&self.reached.borrow());
            return Err(format!("{reached} of {count} websites are done").into());
        }
        Ok(json!({"wall": start.elapsed().as_secs_f64()}))
    }

    /// Every website has a deployment with its image, and a service, which both name it as their
    /// owner.
    fn check(&self) -> Result<Value, Error> {
        let expected = image(self.generation);
        for (api_version, kind) in [("apps/v1", "Deployment"), ("v1", "Service")] {
            let children = self.server.objects(api_version, kind)?.list();
            let of_sites = |child: &&Value| child["metadata"]["ownerReferences"][0]["kind"] == "Website";
            let children: Vec<&Value> = children.iter().filter(of_sites).collect();
            let is_right = |child: &&&Value| {
                let (owner, metadata) = (&child["metadata"]["ownerReferences"][0], &child["metadata"]);
                let image = &child["spec"]["template"]["spec"]["containers"][0]["image"];
                owner["name"] == metadata["name"] && (kind == "Service" || *image == expected)
            };
            let right = children.iter().filter(is_right).count();
            if right as u64 != self.count || children.len() != right {
                return Err(format!("{right} of {} objects of {kind} are right", children.len()).into());
            }
        }
        Ok(json!({}))
    }
}

/// Counts the websites that have reached each generation.
async fn follow(client: Client, reached: watch::Sender<Vec<u64>>) {
    let mut generations: HashMap<String, usize> = HashMap::new();
    let events = watcher(Api::<Website>::all(client), watcher::Config::default()).default_backoff();
    let mut objects = std::pin::pin!(events.applied_objects());
    while let Some(object) = objects.next().await {
        let Ok(site) = object else { continue };
        let observed =
            site.status.as_ref().map_or(0, |status| usize::try_from(status.observed_generation).unwrap_or(0));
        let before = generations.insert(site.name_any(), observed).unwrap_or(0);
        if observed > before {
            reached.send_modify(|reached| {
                reached.resize(reached.len().max(observed + 1), 0);
                reached[before + 1..=observed].iter_mut().for_each(|number| *number += 1);
            });
        }
    }
}
