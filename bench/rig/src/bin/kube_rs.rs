//! kube-runtime's watcher and reflector as a benchmark subject. Settings: `list` and `stream`, its
//! two list strategies; with `+gzip` responses may be compressed.

use std::fmt::Debug;
use std::hash::Hash;
use std::hint::black_box;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::BoxStream;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Selector};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use rig::client::{Depth, HandlerState, Options, Reads, SELECTED, Scenario, Subject, families, run};
use rig::work::Work;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse()?;
    let runtime = Runtime::new()?;
    let mut config = Config::new(format!("http://{}", options.server).parse()?);
    config.disable_compression = !options.setting.ends_with("+gzip");
    let _entered = runtime.enter();
    let client = Client::try_from(config)?;
    match options.work {
        Work::Pods => {
            let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let read = |pod: &Pod| pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
            let share = |writer: &Writer<Pod>| writer.subscribe().map(StreamExt::boxed);
            let ways = Ways { read, fields: Some(pod_fields), node, share };
            follow(&options, runtime, Api::<Pod>::all(client), (), ways)
        }
        Work::EndpointSlices => {
            let read = |slice: &EndpointSlice| slice.endpoints.as_ref().map_or(0, Vec::len);
            follow(&options, runtime, Api::<EndpointSlice>::all(client), (), Ways::reading(read))
        }
        Work::Events => {
            let read = |event: &CoreEvent| event.count.unwrap_or(0) as usize;
            follow(&options, runtime, Api::<CoreEvent>::all(client), (), Ways::reading(read))
        }
        Work::ConfigMaps => {
            let read = |map: &ConfigMap| map.data.as_ref().map_or(0, std::collections::BTreeMap::len);
            follow(&options, runtime, Api::<ConfigMap>::all(client), (), Ways::reading(read))
        }
        Work::Certificates => {
            let kind = GroupVersionKind::gvk("pki.acme.com", "v1", "Certificate");
            let resource = ApiResource::from_gvk_with_plural(&kind, "certificates");
            let read = |object: &DynamicObject| object.data["spec"]["dnsNames"].as_array().map_or(0, Vec::len);
            follow(&options, runtime, Api::all_with(client, &resource), resource, Ways::reading(read))
        }
    }
}

fn follow<K>(
    options: &Options,
    runtime: Runtime,
    api: Api<K>,
    kind: K::DynamicType,
    ways: Ways<K>,
) -> Result<(), Box<dyn std::error::Error>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let writer = match options.scenario {
        Scenario::Handlers => Writer::<K>::new_shared(BUFFER, kind.clone()),
        _ => Writer::<K>::new(kind.clone()),
    };
    let store = writer.as_reader();
    run(
        options,
        KubeRs {
            streaming: options.setting.starts_with("stream"),
            runtime,
            api,
            kind,
            store,
            writer: Some(writer),
            ways,
        },
    )?;
    Ok(())
}

/// Reads five fields.
fn pod_fields(pod: &Pod) -> usize {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let fields = [
        spec.and_then(|spec| spec.node_name.as_ref()),
        spec.and_then(|spec| spec.service_account_name.as_ref()),
        status.and_then(|status| status.phase.as_ref()),
        status.and_then(|status| status.pod_ip.as_ref()),
        status.and_then(|status| status.host_ip.as_ref()),
    ];
    fields.into_iter().flatten().map(String::len).sum()
}

struct KubeRs<K: Resource + Clone + 'static>
where
    K::DynamicType: Eq + Hash + Clone,
{
    streaming: bool,
    runtime: Runtime,
    api: Api<K>,
    kind: K::DynamicType,
    store: Store<K>,
    writer: Option<Writer<K>>,
    ways: Ways<K>,
}

/// Capacity of the event buffer for the slowest of several handlers.
const BUFFER: usize = 1_024;

/// The operations on objects of a kind.
struct Ways<K: Resource + Clone + 'static>
where
    K::DynamicType: Eq + Hash + Clone,
{
    read: fn(&K) -> usize,
    /// Reads five fields.
    fields: Option<fn(&K) -> usize>,
    node: fn(&K) -> Option<String>,
    /// Subscribes to changes, if the kind supports it.
    share: Share<K>,
}

type Share<K> = fn(&Writer<K>) -> Option<BoxStream<'static, Arc<K>>>;

impl<K: Resource + Clone + 'static> Ways<K>
where
    K::DynamicType: Eq + Hash + Clone,
{
    fn reading(read: fn(&K) -> usize) -> Self {
        Self { read, fields: None, node: |_| None, share: |_| None }
    }
}

impl<K> Subject for KubeRs<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    /// kube-runtime has one stream, whose reader is the only handler. To measure several handlers,
    /// each has its own stream, fed by the first one (`reflect_shared`, which does not report
    /// deletions).
    fn start(&mut self, handlers: &[HandlerState]) {
        let config =
            if self.streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
        let writer = self.writer.take().expect("it is started once");
        let mut shared = 0;
        for (state, mut objects) in handlers.iter().zip(std::iter::from_fn(|| (self.ways.share)(&writer))) {
            let state = state.clone();
            shared += 1;
            self.runtime.spawn(async move {
                while let Some(object) = objects.next().await {
                    black_box(object.meta().name.as_deref());
                    state.tally.record(|| version(&*object) as u64);
                }
            });
        }
        let handler = handlers.first().filter(|_| shared == 0).cloned();
        let fields = self.ways.fields;
        let events = watcher(self.api.clone(), config).default_backoff();
        let events = match shared {
            0 => Either::Left(events.reflect(writer)),
            _ => Either::Right(events.reflect_shared(writer)),
        };
        self.runtime.spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(
                        watcher::Event::Apply(object)
                        | watcher::Event::InitApply(object)
                        | watcher::Event::Delete(object),
                    ) => {
                        black_box(object.meta().name.as_deref());
                        if let Some(state) = &handler {
                            if let (Depth::Fields, Some(fields)) = (state.depth(), fields) {
                                black_box(fields(&object));
                            }
                            state.tally.record(|| version(&object) as u64);
                        }
                    }
                    Ok(_) => {}
                    Err(watcher::Error::WatchError(status)) if status.code == 410 => {}
                    Err(error) => eprintln!("kube-rs: {error}"),
                }
            }
        });
    }

    fn reads(&self) -> Reads {
        let mut sorted = self.store.state();
        sorted.sort_by_cached_key(|object| (object.namespace(), object.name_any()));
        let refs: Vec<_> = sorted.iter().map(|object| ObjectRef::from_obj_with(&**object, self.kind.clone())).collect();
        let hash = sorted.iter().find_map(|object| object.labels().get(SELECTED).cloned()).unwrap_or_default();
        let nodes: Vec<String> = self.store.state().iter().filter_map(|object| (self.ways.node)(object)).collect();
        let (count, refs) = (refs.len(), Arc::new(refs));
        let (read, node) = (self.ways.read, self.ways.node);
        let fields = self.ways.fields.unwrap_or(|_| 0);
        let owner = |object: &K| {
            let owners = object.meta().owner_references.iter().flatten();
            owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone()).next()
        };
        let owned = sorted.iter().zip(refs.iter());
        let families = Arc::new(families(owned.filter_map(|(object, key)| Some((owner(object)?, key.clone())))));
        let store = || self.store.clone();
        Reads {
            count,
            get: {
                let (store, refs) = (store(), refs.clone());
                Box::new(move |nth| store.get(&refs[nth % count]).map_or(0, |object| version(&*object)))
            },
            body: {
                let (store, refs) = (store(), refs.clone());
                Box::new(move |nth| store.get(&refs[nth % count]).map_or(0, |object| read(&object)))
            },
            fields: {
                let (store, refs) = (store(), refs.clone());
                Box::new(move |nth| store.get(&refs[nth % count]).map_or(0, |object| fields(&object)))
            },
            // There are no indexes, so every object is scanned.
            children: {
                let (store, families) = (store(), families.clone());
                Box::new(move |nth| {
                    let Some((wanted, _)) = families.get(nth % families.len().max(1)) else { return 0 };
                    let found = store.state_filter(|object| owner(object).as_ref() == Some(wanted));
                    found.iter().map(|object| version(&**object)).sum()
                })
            },
            reconcile: {
                let store = store();
                Box::new(move |nth| {
                    let Some((wanted, key)) = families.get(nth % families.len().max(1)) else { return 0 };
                    let own = store.get(key).map_or(0, |object| fields(&object));
                    let found = store.state_filter(|object| owner(object).as_ref() == Some(wanted));
                    own + found.iter().map(|object| fields(object)).sum::<usize>()
                })
            },
            index: {
                let store = store();
                Box::new(move |nth| {
                    let Some(wanted) = nodes.get(nth % nodes.len().max(1)) else { return 0 };
                    let found = store.state_filter(|object| node(object).as_ref() == Some(wanted));
                    found.iter().map(|object| version(&**object)).sum()
                })
            },
            namespace: {
                let (store, refs) = (store(), refs.clone());
                Box::new(move |nth| {
                    let wanted = refs[nth % count].namespace.as_deref();
                    let found = store.state_filter(|object| object.meta().namespace.as_deref() == wanted);
                    found.iter().map(|object| version(&**object)).sum()
                })
            },
            select: {
                let store = store();
                let selector: Selector = kube::core::Expression::Equal(SELECTED.to_owned(), hash).into();
                Box::new(move |_| store.state_filter_selector(&selector).iter().map(|object| version(&**object)).sum())
            },
            list: {
                let store = store();
                Box::new(move |_| store.state().len())
            },
        }
    }

    fn deeper(&self) -> &'static [Depth] {
        if self.ways.fields.is_some() { &[Depth::Fields] } else { &[] }
    }
}

fn version(object: &impl ResourceExt) -> usize {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
