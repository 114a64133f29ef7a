//! Whether responses are compressed.

/// Whether responses may be compressed.
///
/// The address of the server is not considered: one on loopback is often the near end of a tunnel
/// to a distant cluster, such as `kubectl proxy` or `ssh -L`.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::client::Compression;
///
/// // On this machine or a fast network, bytes are cheaper than decompression.
/// let maps = Informer::<ConfigMap>::builder(client).source(|source| source.compression(Compression::None)).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// [`Gzip`](Self::Gzip), but [`None`](Self::None) where this crate is compiled without
    /// optimisation (`opt-level = 0`, as in a debug build): decompression is then slower than most
    /// networks.
    #[default]
    Auto,
    /// With gzip: large lists and watches take a tenth of the bytes.
    Gzip,
    /// Without compression: for fast networks.
    None,
}

impl Compression {
    pub(super) fn is_gzip(self) -> bool {
        match self {
            Self::Auto => !cfg!(unoptimized),
            Self::Gzip => true,
            Self::None => false,
        }
    }
}
