//! Serves until it is stopped: `cargo run -p kube-embedded --example serve -- 127.0.0.1:8001`, then
//! `kubectl --server http://127.0.0.1:8001 get namespaces`.

use std::net::SocketAddr;

use kube_embedded::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::builder();
    if let Some(address) = std::env::args().nth(1) {
        server = server.address(address.parse::<SocketAddr>()?);
    }
    let server = server.start().await?;
    println!("{}", server.url());
    std::future::pending::<()>().await;
    server.shutdown().await;
    Ok(())
}
