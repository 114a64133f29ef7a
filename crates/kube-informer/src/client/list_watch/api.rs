//! List and watch requests with a `kube::Client`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::core::ApiResource;

use super::ListWatch;
use super::body::Body;
use super::compression::Compression;
use super::followed::{Followed, Purpose};
use super::query::{Detail, ListQuery, Parameters, WatchQuery, WatchStart};
use super::representation::{PROTOBUF_OR_JSON, Representation};
use super::requested_wire::RequestedWire;
use super::response::{Encoding, Reading, content_wire, read_prefix, was_decompressed};
use super::server_name::ServerName;
use crate::client::server_error::answer;
use crate::client::{Failure, Operation, ScopedResource, ServerError, discovery};
use crate::codec::Wire;
use crate::codec::protobuf::{RELEASE, Table};
use crate::object::{FieldSelector, Kind, ObjectKey, ParseError, check_namespace, check_segment};
use crate::shard::{Shard, ShardSupport};

/// One resource of an API server: all of it, or one namespace.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::Kind;
/// use kube_informer::client::ApiListWatch;
///
/// # fn source(client: kube::Client) -> ApiListWatch {
/// ApiListWatch::new(client, Pod::resource())
///     .namespace("kube-system")
///     .labels("tier=control-plane")
///     .tweak(|parameters| parameters.set("shardSelector", "…"))
/// # }
/// ```
#[derive(Clone)]
#[doc(alias("NewListWatchFromClient", "NewFilteredListWatchFromClient"))]
pub struct ApiListWatch {
    client: Client,
    resource: Arc<ApiResource>,
    /// Whether the objects are known to be in no namespace.
    is_cluster_scoped: bool,
    /// Requests go to the version that the server prefers, instead of that of the resource.
    followed: Option<Followed>,
    namespace: Option<Arc<str>>,
    selectors: Parameters,
    metadata_only: bool,
    compression: Compression,
    wire: RequestedWire,
    /// Whether `RequestedWire::Auto` means protobuf, as found before the last list or watch.
    auto_is_protobuf: Arc<AtomicBool>,
    tweak: Option<Tweak>,
    /// A middleware decompresses responses, possibly incorrectly for watches.
    decompressed_below: Arc<AtomicBool>,
    server: ServerName,
    what: Arc<str>,
}

type Tweak = Arc<dyn Fn(&mut Parameters) + Send + Sync>;

impl ApiListWatch {
    /// All objects of a resource, such as an `ApiResource` or a [`Served`](crate::client::Served).
    #[must_use]
    pub fn new(client: Client, resource: impl Into<ScopedResource>) -> Self {
        let resource: ScopedResource = resource.into();
        let is_cluster_scoped = resource.is_cluster_scoped();
        let resource = resource.resource;
        let what = resource.plural.as_str().into();
        Self {
            client,
            resource: Arc::new(resource),
            is_cluster_scoped,
            followed: None,
            namespace: None,
            selectors: Parameters::default(),
            metadata_only: false,
            compression: Compression::default(),
            wire: RequestedWire::default(),
            auto_is_protobuf: Arc::default(),
            tweak: None,
            decompressed_below: Arc::default(),
            server: ServerName::default(),
            what,
        }
    }

    /// All objects of the resource of a type; only their metadata for
    /// [`MetadataOnly`](crate::MetadataOnly).
    #[must_use]
    pub fn of<K: Kind>(client: Client) -> Self {
        let source = Self::new(client, ScopedResource::of::<K>());
        if K::METADATA_ONLY { source.metadata_only() } else { source }
    }

    /// Sends requests to the version that the server prefers, whatever it is. The version and the
    /// kind of the resource have no meaning then.
    pub(crate) fn followed(mut self) -> Self {
        self.followed = Some(Followed::new(&self.resource.group, &self.resource.plural));
        self
    }

    /// Restricts it to one namespace; to all of them with `""`. A set of namespaces needs one
    /// source each. Has no effect on cluster-scoped kinds.
    ///
    /// A request within a name that no namespace can have fails without being sent.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        let namespace = namespace.into();
        if namespace.is_empty() || self.is_cluster_scoped {
            self.what = self.resource.plural.as_str().into();
            self.namespace = None;
            return self;
        }
        self.what = format!("{} in namespace {namespace}", self.resource.plural).into();
        self.namespace = Some(namespace);
        self
    }

    /// Restricts it to objects that match a label selector.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.selectors.set("labelSelector", selector.to_string());
        self
    }

    /// Restricts it to objects that match a field selector.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.selectors.set("fieldSelector", selector.to_string());
        self
    }

    /// Restricts it to one object, by namespace and name.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::ObjectKey;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let one = ApiListWatch::of::<ConfigMap>(client).object(&ObjectKey::namespaced("default", "a"));
    /// let list = Pager::<ConfigMap>::new(one).list().await?;
    /// assert_eq!(list.objects.len(), 1);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn object(self, key: &ObjectKey) -> Self {
        let named = self.fields(FieldSelector::named(key.name()));
        match key.namespace() {
            Some(namespace) => named.namespace(namespace),
            None => named,
        }
    }

    /// Requests only the metadata of objects: the server omits the rest.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::MetadataOnly;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let maps = ApiListWatch::of::<ConfigMap>(client).metadata_only();
    /// let list = Pager::<MetadataOnly>::new(maps).list().await?;
    /// assert_eq!(list.objects[0].label("app"), Some("web"));
    /// assert_eq!(list.objects[0].value_at("data.ip")?, None);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    pub(crate) fn is_metadata_only(&self) -> bool {
        self.metadata_only
    }

    /// Sets whether responses may be compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the wire format to request. Kinds without a known protobuf schema are requested as
    /// JSON.
    #[must_use]
    pub fn wire(mut self, wire: impl Into<RequestedWire>) -> Self {
        self.wire = wire.into();
        self
    }

    /// Changes the parameters of every request, after all other settings.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let maps = ApiListWatch::of::<ConfigMap>(client).tweak(|parameters| parameters.set("fieldSelector", "metadata.name=b"));
    /// assert_eq!(Pager::<ConfigMap>::new(maps).list().await?.objects.len(), 1);
    /// # Ok(()) });
    /// ```
    #[must_use]
    #[doc(alias = "TweakListOptions")]
    pub fn tweak(mut self, tweak: impl Fn(&mut Parameters) + Send + Sync + 'static) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    async fn request(
        &self,
        operation: Operation,
        namespace: Option<&str>,
        parameters: Parameters,
        accept: &'static str,
    ) -> Result<Body, ServerError> {
        let error = |failure| ServerError::new(operation, Arc::clone(&self.what), failure);
        let response = self.send(operation, namespace, parameters, accept).await.map_err(error)?;
        let (parts, body) = response.into_parts();
        let encoding = Encoding::of(&parts.headers).map_err(error)?;
        let mut body = self.decompressed(operation, body, encoding);
        if !parts.status.is_success() {
            let prefix = read_prefix(&mut body).await;
            return Err(error(answer::failure(parts.status, &parts.headers, &prefix, Timestamp::now())));
        }
        match content_wire(&parts.headers) {
            Ok(wire) => Ok(body.in_form(wire)),
            Err(content_type) => Err(error(Failure::NotJson { content_type })),
        }
    }

    /// Sends a request. A watch whose response was decompressed by a middleware is repeated without
    /// compression.
    async fn send(
        &self,
        operation: Operation,
        namespace: Option<&str>,
        mut parameters: Parameters,
        accept: &'static str,
    ) -> Result<Response<kube::client::Body>, Failure> {
        if let Some(tweak) = &self.tweak {
            tweak(&mut parameters);
        }
        let path = self.path(namespace).map_err(|error| Failure::Request(error.to_string().into()))?;
        let uri = format!("{path}?{}", parameters.encode());
        loop {
            let gzip = self.compression.is_gzip() && !self.decompressed_below.load(Ordering::Relaxed);
            let request = Request::get(&uri)
                .header(ACCEPT, accept)
                .header(ACCEPT_ENCODING, if gzip { "gzip" } else { "identity" })
                .extension(self.server.clone())
                .body(kube::client::Body::empty())
                .map_err(|error| Failure::Request(error.to_string().into()))?;
            let response = self.client.send(request).await.map_err(|error| Failure::of_kube(&error))?;
            let watch = matches!(operation, Operation::Watch | Operation::StreamingList);
            if !watch || !gzip || !was_decompressed(response.headers()) {
                return Ok(response);
            }
            self.decompressed_below.store(true, Ordering::Relaxed);
        }
    }

    /// Checks that the parts of the resource's name mean only themselves in a path.
    pub(crate) fn check_resource(&self) -> Result<(), ParseError> {
        let ApiResource { group, api_version, plural, .. } = &*self.resource;
        let version = api_version.rsplit_once('/').map_or(api_version.as_str(), |(_, version)| version);
        if !group.is_empty() {
            check_segment("group", group)?;
        }
        if self.followed.is_none() {
            check_segment("version", version)?;
        }
        check_segment("plural", plural)
    }

    /// The path of the resource, within the namespace if there is one.
    fn path(&self, namespace: Option<&str>) -> Result<String, ParseError> {
        self.check_resource()?;
        let ApiResource { group, api_version, plural, .. } = &*self.resource;
        let version = api_version.rsplit_once('/').map_or(api_version.as_str(), |(_, version)| version);
        let mut path = if group.is_empty() { format!("/api/{version}/") } else { format!("/apis/{group}/{version}/") };
        if let Some(namespace) = namespace.filter(|_| !self.is_cluster_scoped) {
            check_namespace(namespace)?;
            path.push_str("namespaces/");
            path.push_str(namespace);
            path.push('/');
        }
        path.push_str(plural);
        Ok(path)
    }

    /// The decompressed bytes of a response.
    fn decompressed(&self, operation: Operation, body: kube::client::Body, encoding: Encoding) -> Body {
        let what = Arc::clone(&self.what);
        let gunzip = match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Box::default()),
        };
        let reading = Reading::Open { body, gunzip };
        Body::from_stream(stream::unfold(reading, move |reading| {
            let what = Arc::clone(&what);
            async move {
                let (bytes, reading) = reading.next().await?;
                Some((bytes.map_err(|failure| ServerError::new(operation, what, failure)), reading))
            }
        }))
    }

    fn representation(&self) -> Representation {
        let is_protobuf = match self.wire {
            RequestedWire::Json => false,
            RequestedWire::Protobuf => self.may_be_protobuf(),
            RequestedWire::Auto => self.may_be_protobuf() && self.auto_is_protobuf.load(Ordering::Relaxed),
        };
        let wire = if is_protobuf { Wire::Protobuf } else { Wire::Json };
        if self.metadata_only { Representation::Metadata(wire) } else { Representation::Objects(wire) }
    }

    /// Whether the objects can be read as protobuf; the metadata of every kind can.
    fn may_be_protobuf(&self) -> bool {
        self.metadata_only || Table::get().of_kind(&self.resource.api_version, &self.resource.kind).is_some()
    }

    /// Decides what `RequestedWire::Auto` means for the next list or watch. The server may have
    /// been upgraded since the last one.
    async fn choose_wire(&self) {
        if self.wire == RequestedWire::Auto && self.may_be_protobuf() {
            let is_known = discovery::release(&self.client).await.is_some_and(|release| release <= RELEASE);
            self.auto_is_protobuf.store(is_known, Ordering::Relaxed);
        }
    }

    fn selected(&self, mut parameters: Parameters) -> Parameters {
        for name in ["labelSelector", "fieldSelector"] {
            if let Some(selector) = self.selectors.get(name) {
                parameters.set(name, selector);
            }
        }
        parameters
    }
}

impl ListWatch for ApiListWatch {
    async fn list(&self, query: ListQuery) -> Result<Body, ServerError> {
        let Some(followed) = &self.followed else { return self.list_here(query).await };
        let purpose =
            if query.detail == Detail::Metadata || query.object.is_some() { Purpose::Continue } else { Purpose::List };
        let there = self.resolved(followed, Operation::List, purpose).await?;
        let response = there.list_here(query).await;
        response.inspect_err(|error| lost(followed, error))
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        let Some(followed) = &self.followed else { return self.watch_here(query).await };
        let purpose = match query.start {
            WatchStart::After(_) => Purpose::Continue,
            WatchStart::Everything { .. } => Purpose::List,
        };
        let there = self.resolved(followed, Operation::Watch, purpose).await?;
        let response = there.watch_here(query).await;
        response.inspect_err(|error| lost(followed, error))
    }

    async fn shard_support(&self, shard: Arc<Shard>) -> Result<ShardSupport, ServerError> {
        self.shard_support_here(shard).await
    }

    fn server(&self) -> Option<Arc<str>> {
        self.server.get()
    }
}

/// Notes whether the server does not serve the resource any more.
fn lost(followed: &Followed, error: &ServerError) {
    if error.is_not_found() {
        followed.lost();
    }
}

impl ApiListWatch {
    /// The same requests to the version in which the server serves the resource.
    async fn resolved(&self, followed: &Followed, operation: Operation, purpose: Purpose) -> Result<Self, ServerError> {
        let served = followed.resolve(&self.client, operation, &self.what, purpose).await?;
        let resource = ScopedResource::from(&*served);
        let is_cluster_scoped = resource.is_cluster_scoped();
        let namespace = self.namespace.clone().filter(|_| !is_cluster_scoped);
        Ok(Self { resource: Arc::new(resource.resource), is_cluster_scoped, followed: None, namespace, ..self.clone() })
    }

    /// The same requests to the served version; none if the version is that of the resource.
    pub(super) async fn served_version(&self) -> Result<Option<Self>, ServerError> {
        match &self.followed {
            Some(followed) => self.resolved(followed, Operation::Probe, Purpose::Continue).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn resource(&self) -> &ApiResource {
        &self.resource
    }

    pub(super) fn what(&self) -> Arc<str> {
        Arc::clone(&self.what)
    }

    /// A request for whole objects in JSON, without selectors.
    pub(super) async fn request_json(&self, operation: Operation, parameters: Parameters) -> Result<Body, ServerError> {
        self.request(operation, self.namespace.as_deref(), parameters, "application/json").await
    }

    async fn list_here(&self, query: ListQuery) -> Result<Body, ServerError> {
        if query.detail != Detail::Metadata && query.object.is_none() && query.continue_token.is_none() {
            self.choose_wire().await;
        }
        let (operation, accept) = match (query.detail, self.representation()) {
            // Only a preference: a server that does not support it may send complete objects.
            (Detail::Metadata, Representation::Objects(_)) => {
                (Operation::Probe, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
            }
            (_, Representation::Metadata(Wire::Json)) => {
                (Operation::List, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
            }
            (_, Representation::Metadata(Wire::Protobuf)) => (
                Operation::List,
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;q=0.9",
            ),
            (_, Representation::Objects(Wire::Json)) => (Operation::List, "application/json"),
            (_, Representation::Objects(Wire::Protobuf)) => (Operation::List, PROTOBUF_OR_JSON),
        };
        let mut parameters = self.selected(query.parameters());
        let mut namespace = self.namespace.as_deref();
        if let Some(key) = &query.object {
            let name = FieldSelector::named(key.name()).to_string();
            let selected = parameters.get("fieldSelector").map(|others| format!("{others},{name}"));
            parameters.set("fieldSelector", selected.unwrap_or(name));
            namespace = namespace.or(key.namespace());
        }
        self.request(operation, namespace, parameters, accept).await
    }

    async fn watch_here(&self, query: WatchQuery) -> Result<Body, ServerError> {
        self.choose_wire().await;
        let accept = match self.representation() {
            Representation::Metadata(Wire::Json) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Representation::Metadata(Wire::Protobuf) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;q=0.9"
            }
            Representation::Objects(Wire::Json) => "application/json",
            Representation::Objects(Wire::Protobuf) => PROTOBUF_OR_JSON,
        };
        let operation = match query.start {
            WatchStart::After(_) => Operation::Watch,
            WatchStart::Everything { .. } => Operation::StreamingList,
        };
        let parameters = self.selected(query.parameters());
        self.request(operation, self.namespace.as_deref(), parameters, accept).await
    }
}

impl fmt::Debug for ApiListWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiListWatch")
            .field("what", &self.what)
            .field("selectors", &self.selectors)
            .field("metadata_only", &self.metadata_only)
            .finish_non_exhaustive()
    }
}
