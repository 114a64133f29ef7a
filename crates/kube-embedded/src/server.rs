//! The server handle that tests and demos hold, and its builder.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;

use crate::api::access::Access;
use crate::cluster::{Cluster, ClusterSettings, Controller, FirstAccess};
use crate::controllers::crds;
use crate::controllers::garbage;
use crate::controllers::namespace_deletion;
use crate::faults::Faults;
use crate::faults::request_log::{LoggedRequest, OpenWatch};
use crate::http::body::Body;
use crate::http::kubeconfig;
use crate::http::listener::{Gate, Listener};
use crate::http::service::{ServerShared, Service};
use crate::http::tls::Tls;
use crate::storage;

/// An API server in the process.
///
/// Dropping it ends all tasks and connections at once; [`Server::shutdown`] lets requests finish
/// and joins the tasks.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerShared>,
    listener: Option<Listener>,
    authority_pem: Option<String>,
    housekeeping: JoinHandle<()>,
}

/// The configuration of a [`Server`] before it starts.
#[derive(Debug, Clone)]
#[must_use = "a server runs only once it is started"]
pub struct ServerBuilder {
    settings: ClusterSettings,
    transport: Transport,
    address: SocketAddr,
    access: Access,
}

/// The transport over which clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Only through [`Server::service`].
    InProcess,
    Http,
    Tls,
}

/// A state of the server that [`Server::restore`] can return to; see [`Server::backup`].
#[derive(Debug, Clone)]
pub struct Backup(storage::Backup);

impl Backup {
    /// The revision at which the backup was taken.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }
}

impl Server {
    /// Returns a builder with the defaults: plain HTTP on a free port of the loopback address.
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            settings: ClusterSettings::default(),
            transport: Transport::Http,
            address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            access: Access::open(),
        }
    }

    /// The URL of the server, such as `http://127.0.0.1:40123`.
    ///
    /// Without a socket it is a placeholder host name that only the in-process service understands.
    #[must_use]
    pub fn url(&self) -> String {
        let Some(listener) = &self.listener else { return "http://kube-embedded.invalid".to_owned() };
        let scheme = if self.authority_pem.is_some() { "https" } else { "http" };
        let mut address = listener.address();
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!("{scheme}://{address}")
    }

    /// A kubeconfig, in YAML, with which kubectl and client libraries reach the server.
    ///
    /// Over TLS it contains the server's certificate authority. Clients ignore a token over plain
    /// HTTP, so use TLS where access rules matter.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        kubeconfig::write(&self.url(), self.authority_pem.as_deref(), None)
    }

    /// A [`kubeconfig`](Self::kubeconfig) that authenticates with this token.
    #[must_use]
    pub fn kubeconfig_for(&self, token: &str) -> String {
        kubeconfig::write(&self.url(), self.authority_pem.as_deref(), Some(token))
    }

    /// Replaces the access rules, from the next request on. Open watches stay open.
    pub fn set_access(&self, access: Access) {
        *self.shared.access.write() = Arc::new(access);
    }

    /// Sets the handler of the webhooks of a service, for configurations with
    /// `clientConfig.service`, or with a `url` of the host `NAME.NAMESPACE.svc`: they are called in
    /// the process, without a socket or certificates. A handler is any HTTP service, such as a
    /// router of webhooks.
    ///
    /// Other webhooks are called at their URL, with the authorities in their `caBundle`.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// use http::{Request, Response};
    /// use http_body_util::{BodyExt as _, Full};
    /// use serde_json::{Value, json};
    ///
    /// let refuse = tower::service_fn(async |request: Request<kube_embedded::Body>| {
    ///     let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    ///     let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": {"message": "no"}});
    ///     let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Response::new(Full::<bytes::Bytes>::from(answer.to_string())))
    /// });
    /// server.serve_webhooks("system", "webhook-service", refuse);
    /// # Ok(()) });
    /// ```
    pub fn serve_webhooks<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
        S::Error: fmt::Display,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: fmt::Display,
    {
        self.shared.webhooks.set(namespace, name, service);
    }

    /// The certificate authority that clients must trust, in PEM; `None` without TLS.
    #[must_use]
    pub fn certificate_authority(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// The server as an in-process service: no sockets, and time may be paused.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::new(self.shared.clone())
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.cluster().storage.revision()
    }

    /// The last 10,000 requests, oldest first; fewer if their paths, queries and users take more
    /// than 8 MiB.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.shared.log.requests()
    }

    /// The number of requests since the start.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.shared.log.total()
    }

    /// Clears the list that [`Server::requests`] returns.
    pub fn forget_requests(&self) {
        self.shared.log.forget();
    }

    /// The watches that are open now.
    #[must_use]
    pub fn watches(&self) -> Vec<OpenWatch> {
        self.shared.log.watches()
    }

    /// Waits until the server is in a state: until `reached` returns true. It is called at once,
    /// and again after each write, each request, and each watch that is opened or closed.
    ///
    /// The wait has no limit; `tokio::time::timeout` sets one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// let server = kube_embedded::Server::builder().in_process().start().await?;
    /// let count = |server: &kube_embedded::Server| server.objects("v1", "ConfigMap").map_or(0, |maps| maps.len());
    /// let write = async { server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})) };
    /// let (_, written) = tokio::join!(server.until(|server| count(server) == 1), write);
    /// # written?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until(&self, mut reached: impl FnMut(&Self) -> bool) {
        let mut revisions = self.cluster().storage.revisions();
        loop {
            // Registers for notifications before the check, so that no change in between is missed.
            let mut logged = std::pin::pin!(self.shared.log.changed());
            logged.as_mut().enable();
            revisions.mark_seen();
            if reached(self) {
                return;
            }
            tokio::select! {
                _ = revisions.changed() => {}
                () = logged => {}
            }
        }
    }

    /// The fault injector: rules may be injected and removed at any time.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Compacts the history: continue tokens, exact versions and watches from before now get 410.
    pub fn compact_now(&self) {
        self.cluster().storage.compact();
    }

    /// Refuses connections until [`Server::accept`]. Open ones stay; see [`Server::cut`].
    ///
    /// The listening socket is closed; the in-process service fails with
    /// [`io::ErrorKind::ConnectionRefused`].
    pub async fn refuse(&self) {
        self.shared.refusing.store(true, Ordering::Relaxed);
        if let Some(listener) = &self.listener {
            listener.set(Gate::Closed).await;
        }
    }

    /// Accepts connections again, on the same port.
    pub async fn accept(&self) {
        self.shared.refusing.store(false, Ordering::Relaxed);
        if let Some(listener) = &self.listener {
            listener.set(Gate::Open).await;
        }
    }

    /// Breaks every open connection and stream immediately, even in the middle of a response.
    pub fn cut(&self) {
        self.shared.lifecycle.cut();
    }

    /// Simulates a restart that loses the history: connections break, and requests with an old
    /// version get 410.
    pub fn restart(&self) {
        self.compact_now();
        self.cut();
    }

    /// The current state, to return to with [`Server::restore`].
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.cluster().storage.backup())
    }

    /// Simulates a restart from a backup: the objects and the revision are restored, the history is
    /// lost, connections break.
    ///
    /// New writes get revisions that clients may already have seen with other content, as after a
    /// real restore.
    pub fn restore(&self, backup: &Backup) {
        self.cluster().storage.restore(&backup.0);
        crds::reload(self.cluster());
        self.cut();
    }

    /// Shuts down gracefully: streams end, pending requests finish, and when this returns no task
    /// and no connection is left.
    pub async fn shutdown(mut self) {
        self.shared.lifecycle.close();
        if let Some(listener) = &mut self.listener {
            listener.join().await;
        }
        self.housekeeping.abort();
        drop((&mut self.housekeeping).await);
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.shared.cluster
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lifecycle.close();
        self.housekeeping.abort();
    }
}

impl ServerBuilder {
    /// Serves TLS, with a generated certificate authority that [`Server::kubeconfig`] contains.
    pub fn tls(mut self) -> Self {
        self.transport = Transport::Tls;
        self
    }

    /// Opens no socket: only [`Server::service`] reaches the server.
    pub fn in_process(mut self) -> Self {
        self.transport = Transport::InProcess;
        self
    }

    /// Listens on this address instead of a free port on loopback.
    ///
    /// If other machines can reach the address, set [access rules](Self::access) with tokens, and
    /// use [TLS](Self::tls): by default every request is allowed.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Sets the access rules; by default every user may do everything. [`Server::set_access`]
    /// changes them later.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Keeps at most this many changes of each resource for watches and consistent pagination
    /// (default 20,000).
    pub fn history(mut self, changes: usize) -> Self {
        self.settings.window.changes = changes;
        self
    }

    /// Keeps changes no longer than this (default 5 minutes).
    pub fn history_age(mut self, age: Duration) -> Self {
        self.settings.window.age = age;
        self
    }

    /// The interval between bookmarks (default one minute).
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval;
        self
    }

    /// The minimum timeout of a watch that requests none itself (default 30 minutes); the maximum
    /// is twice that.
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.settings.min_watch_timeout = timeout;
        self
    }

    /// Closes a watch that lags by more changes than this (default 10,000).
    pub fn watch_backlog(mut self, changes: usize) -> Self {
        self.settings.watch_backlog = changes;
        self
    }

    /// The response to the first read of a new custom kind; by default the real server's 429.
    pub fn first_access(mut self, first_access: FirstAccess) -> Self {
        self.settings.first_access = first_access;
        self
    }

    /// Enables garbage collection of objects whose owners are deleted, as the controller manager of
    /// a real cluster does: after the owner (background), before it (foreground) or not at all
    /// (orphan).
    ///
    /// Off by default, as on an API server without a controller manager.
    pub fn garbage_collection(mut self) -> Self {
        self.settings.garbage_collection = Controller::Enabled;
        self
    }

    /// Enables namespace deletion: deletes the content of terminating namespaces and finalizes
    /// them, as the controller manager of a real cluster does.
    ///
    /// Off by default, as on an API server without a controller manager: a terminating namespace
    /// stays until a client finalizes it.
    pub fn namespace_deletion(mut self) -> Self {
        self.settings.namespace_deletion = Controller::Enabled;
        self
    }

    /// Creates more of what kube-apiserver creates at its first start: roles, cluster roles and
    /// their bindings, priority classes, flow schemas and priority levels, API services, and the
    /// network of services. The roles grant nothing: only the [access rules](Self::access) do.
    ///
    /// Off by default. The namespaces and the service `default/kubernetes` are always there.
    pub fn bootstrap_objects(mut self) -> Self {
        self.settings.has_bootstrap_objects = true;
        self
    }

    /// Obeys `shardSelector` (KEP-5866) in lists, watches and deletions of collections, as
    /// kube-apiserver does with the feature gate `ShardedListAndWatch`.
    ///
    /// Off by default, as there: the parameter is ignored, and everything is returned.
    pub fn sharded_list_and_watch(mut self) -> Self {
        self.settings.has_shards = true;
        self
    }

    /// Generates uids and generated names from a seed, so that they are the same in each run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Sets the wall time at start, from which the server's time advances with tokio's clock. By
    /// default it is the current time.
    pub fn start_time(mut self, time: SystemTime) -> Self {
        self.settings.start_time = Some(time);
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on.
    #[expect(clippy::unused_async, reason = "starting may have to wait one day, and callers should not change then")]
    pub async fn start(self) -> io::Result<Server> {
        let shared = ServerShared::new(self.settings, self.access);
        let tls = match self.transport {
            Transport::Tls => Some(Tls::new(self.address.ip())?),
            Transport::Http | Transport::InProcess => None,
        };
        let (acceptor, authority_pem) = tls.map(|tls| (tls.acceptor, tls.authority_pem)).unzip();
        let listener = match self.transport {
            Transport::InProcess => None,
            Transport::Http | Transport::Tls => Some(Listener::start(self.address, acceptor, shared.clone())?),
        };
        if let Some(listener) = &listener {
            shared.address.get_or_init(|| listener.address().to_string());
        }
        let housekeeping = tokio::spawn(housekeeping(shared.clone(), self.settings.window.age));
        Ok(Server { shared, listener, authority_pem, housekeeping })
    }
}

/// Background work of the server: expiry of old changes and the optional controllers.
async fn housekeeping(shared: Arc<ServerShared>, age: Duration) {
    let cluster = &shared.cluster;
    let ClusterSettings { garbage_collection, namespace_deletion, .. } = cluster.settings;
    tokio::join!(
        expire_changes(&shared, age),
        cluster.custom_tables.close_retired(cluster),
        async {
            if garbage_collection == Controller::Enabled {
                garbage::collect(cluster).await;
            }
        },
        async {
            if namespace_deletion == Controller::Enabled {
                namespace_deletion::delete_namespaces(cluster).await;
            }
        },
    );
}

/// Expires old changes, ten times per maximum age (at most every 100 ms).
async fn expire_changes(shared: &ServerShared, age: Duration) {
    let mut ticks = tokio::time::interval((age / 10).max(Duration::from_millis(100)));
    loop {
        let now = ticks.tick().await;
        shared.cluster.storage.expire(now);
    }
}
