//! This project's informer as a benchmark subject. Settings: `default` (all of the library's, but
//! for compression), `plain`, `compact`, `decoded`; with
//! `+gzip` responses may be compressed, with `+protobuf` they are requested in that format, with
//! `+lean` managedFields are dropped; `+mimalloc` is for `ours_mimalloc`, which is this program
//! with another allocator. A new wire setting needs one more word and one more line in `informer`;
//! the runner's `WIRES` adds it to the measurements.

use std::hint::black_box;

use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Client, Config};
use kube_informer::client::{ApiListWatch, Compression};
use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::{Event, Index, Informer, Keep, Kind, Obj, Object, Registration, Selector, Uid, Wire};
use rig::client::{Depth, HandlerState, Options, Reads, SELECTED, Scenario, Subject, families, run};
use rig::work::Work;
use tokio::runtime::Runtime;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse()?;
    match options.work {
        Work::Pods => {
            let read = |pod: &Pod| pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
            follow::<Pod>(&options, Pod::resource(), read, Some(pod_fields))
        }
        Work::EndpointSlices => follow::<EndpointSlice>(
            &options,
            EndpointSlice::resource(),
            |slice| slice.endpoints.as_ref().map_or(0, Vec::len),
            None,
        ),
        Work::Events => {
            follow::<CoreEvent>(&options, CoreEvent::resource(), |event| event.count.unwrap_or(0) as usize, None)
        }
        Work::ConfigMaps => follow::<ConfigMap>(
            &options,
            ConfigMap::resource(),
            |map| map.data.as_ref().map_or(0, std::collections::BTreeMap::len),
            None,
        ),
        Work::Certificates => {
            let kind = GroupVersionKind::gvk("pki.acme.com", "v1", "Certificate");
            let resource = ApiResource::from_gvk_with_plural(&kind, "certificates");
            follow::<DynamicObject>(
                &options,
                resource,
                |object| object.data["spec"]["dnsNames"].as_array().map_or(0, Vec::len),
                None,
            )
        }
    }
}

fn follow<K: Object>(
    options: &Options,
    resource: ApiResource,
    read: fn(&K) -> usize,
    fields: Option<fn(&Obj<K>) -> usize>,
) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new()?;
    let _entered = runtime.enter();
    let client = kube_informer::client(Config::new(format!("http://{}", options.server).parse()?))?;
    run(
        options,
        Ours {
            options: options.clone(),
            informer: informer(options, client, resource),
            read,
            fields,
            index: None,
            owners: None,
            handlers: Vec::new(),
        },
    )?;
    Ok(())
}

fn informer<K: Object>(options: &Options, client: Client, resource: ApiResource) -> Informer<K> {
    let mut words = options.setting.split('+');
    let keep = match words.next() {
        Some("default") => None,
        Some("plain") => Some(Keep::Plain),
        Some("decoded") => Some(Keep::Decoded),
        _ => Some(Keep::Compact),
    };
    let wire = |source: ApiListWatch, word| match word {
        "lean" | "mimalloc" => source,
        "gzip" => source.compression(Compression::Gzip),
        "protobuf" => source.wire(Wire::Protobuf),
        "json" => source.wire(Wire::Json),
        other => unreachable!("no such setting: {other}"),
    };
    let source = |source: ApiListWatch| words.fold(source.compression(Compression::None), wire);
    let builder = Informer::builder_for(client, resource).source(source);
    let builder = match keep {
        Some(keep) => builder.keep(keep),
        None => builder,
    };
    if options.setting.ends_with("+lean") { builder.drop_managed_fields().build() } else { builder.build() }
}

/// Five fields of a pod.
#[derive(serde::Deserialize)]
struct PodFields {
    spec: PodSpecFields,
    status: PodStatusFields,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpecFields {
    node_name: Option<String>,
    service_account_name: Option<String>,
}

#[derive(serde::Deserialize)]
struct PodStatusFields {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(rename = "hostIP")]
    host_ip: Option<String>,
}

/// Reads five fields with a projection.
fn pod_fields(pod: &Obj<Pod>) -> usize {
    let pod = pod.view::<PodFields>();
    pod.get().map_or(0, |PodFields { spec, status }| {
        let fields = [&spec.node_name, &spec.service_account_name, &status.phase, &status.pod_ip, &status.host_ip];
        fields.into_iter().flatten().map(String::len).sum()
    })
}

struct Ours<K> {
    options: Options,
    informer: Informer<K>,
    read: fn(&K) -> usize,
    /// Reads five fields, with a projection.
    fields: Option<fn(&Obj<K>) -> usize>,
    index: Option<Index<K, String>>,
    owners: Option<Index<K, Uid>>,
    handlers: Vec<Registration>,
}

impl<K: Object> Subject for Ours<K> {
    fn start(&mut self, handlers: &[HandlerState]) {
        if self.options.scenario == Scenario::Reads {
            self.index = Some(self.informer.index_by_path("spec.nodeName").expect("a path"));
            self.owners = Some(self.informer.index(|object| object.controller().map(|owner| owner.uid())));
        }
        for state in handlers {
            let (state, read, fields) = (state.clone(), self.read, self.fields);
            // Every event is delivered, so that all clients do the same work.
            let backlog = Backlog::Every { limit: 1 << 20, overflow: Overflow::Coalesce };
            let handler =
                self.informer.handler().backlog(backlog).on_event(move |event| handle(&state, read, fields, &event));
            self.handlers.push(handler);
        }
        self.informer.start();
    }

    fn reads(&self) -> Reads {
        let lister = self.informer.lister();
        let sorted = lister.sorted();
        let keys: Vec<_> = sorted.iter().map(|object| object.key().clone()).collect();
        let hash = sorted.iter().find_map(|object| object.label(SELECTED).map(str::to_owned)).unwrap_or_default();
        let selector: Selector = format!("{SELECTED}={hash}").parse().expect("a selector");
        let count = keys.len();
        let keys = std::sync::Arc::new(keys);
        let seen = |object: &Obj<K>| object.version().number().map_or(0, |number| number as usize);
        let read = self.read;
        let nodes: Vec<String> = self.index.as_ref().map(Index::values).unwrap_or_default();
        let index = self.index.clone();
        let fields = self.fields.unwrap_or(|_| 0);
        let owners = self.owners.clone();
        let families = families(sorted.iter().filter_map(|pod| Some((pod.controller()?.uid(), pod.key().clone()))));
        Reads {
            count,
            get: {
                let (lister, keys) = (lister.clone(), keys.clone());
                Box::new(move |nth| lister.get(&keys[nth % count]).as_ref().map_or(0, seen))
            },
            body: {
                let (lister, keys) = (lister.clone(), keys.clone());
                Box::new(move |nth| lister.get(&keys[nth % count]).map_or(0, |object| object.get().map_or(0, read)))
            },
            fields: {
                let (lister, keys) = (lister.clone(), keys.clone());
                Box::new(move |nth| lister.get(&keys[nth % count]).as_ref().map_or(0, fields))
            },
            children: {
                let (owners, families) = (owners.clone(), families.clone());
                Box::new(move |nth| match (&owners, families.get(nth % families.len().max(1))) {
                    (Some(owners), Some((owner, _))) => owners.get(owner).iter().map(seen).sum(),
                    _ => 0,
                })
            },
            reconcile: {
                let lister = lister.clone();
                Box::new(move |nth| match (&owners, families.get(nth % families.len().max(1))) {
                    (Some(owners), Some((owner, key))) => {
                        let own = lister.get(key).as_ref().map_or(0, fields);
                        own + owners.get(owner).iter().map(fields).sum::<usize>()
                    }
                    _ => 0,
                })
            },
            index: Box::new(move |nth| match &index {
                Some(index) if !nodes.is_empty() => index.get(&nodes[nth % nodes.len()]).iter().map(seen).sum(),
                _ => 0,
            }),
            namespace: {
                let (lister, keys) = (lister.clone(), keys.clone());
                Box::new(move |nth| {
                    let namespace = keys[nth % count].namespace().unwrap_or_default();
                    lister.namespace(namespace).list().iter().map(seen).sum()
                })
            },
            select: {
                let lister = lister.clone();
                Box::new(move |_| lister.select(&selector).iter().map(seen).sum())
            },
            list: Box::new(move |_| lister.list().len()),
        }
    }

    fn deeper(&self) -> &'static [Depth] {
        if self.fields.is_some() { &[Depth::Fields, Depth::New, Depth::Both] } else { &[Depth::New, Depth::Both] }
    }
}

fn handle<K: Object>(
    state: &HandlerState,
    read: fn(&K) -> usize,
    fields: Option<fn(&Obj<K>) -> usize>,
    event: &Event<K>,
) {
    black_box(event.key());
    let depth = state.depth();
    if depth == Depth::Fields {
        black_box(fields.map(|fields| fields(event.object())));
    }
    if matches!(depth, Depth::New | Depth::Both) {
        black_box(event.object().get().map_or(0, read));
    }
    if depth == Depth::Both {
        black_box(event.old().and_then(|old| old.get().ok()).map_or(0, read));
    }
    state.tally.record(|| event.object().version().number().unwrap_or(0));
}
