// Command etcd runs one etcd member on loopback with throw-away data.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	data := flag.String("data", "", "folder of the data, empty at first")
	client := flag.String("client", "http://127.0.0.1:2379", "address that clients use")
	peer := flag.String("peer", "http://127.0.0.1:2380", "address that peers would use")
	flag.Parse()
	if err := run(*data, *client, *peer); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func run(data, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Dir = data
	cfg.LogLevel = "warn"
	// Durability buys nothing for data that is thrown away, and every write waits for it.
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	member, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer member.Close()

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-stop:
		return nil
	case err := <-member.Err():
		return err
	}
}
