package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pretended follows a simulated cluster, and answers each line of its standard input with its
// figures (rig/src/bin/pretended_ours.rs).
func pretended(url string) error {
	config := &rest.Config{
		Host:          url,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	var events atomic.Int64
	count := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { events.Add(1) },
		UpdateFunc: func(any, any) { events.Add(1) },
		DeleteFunc: func(any) { events.Add(1) },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Nodes().Informer(),
		factory.Coordination().V1().Leases().Informer(),
	} {
		if _, err := informer.AddEventHandler(count); err != nil {
			return err
		}
	}
	factory.StartWithContext(context.Background())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "forget peak":
			forgetPeak()
		case "free":
			// The best case: all unused memory is returned.
			debug.FreeOSMemory()
		}
		figures := map[string]float64{
			"cpu": cpu().Seconds(), "rss": resident(), "peak": peak(), "events": float64(events.Load()),
		}
		if err := json.NewEncoder(os.Stdout).Encode(figures); err != nil {
			return fmt.Errorf("figures: %w", err)
		}
	}
	return nil
}
