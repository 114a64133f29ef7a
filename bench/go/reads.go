package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	same     = 1_000
	batches  = 9
	selected = "pod-template-hash"
)

// reads measures the ways to read a cache of pods.
func (d *drive) reads() error {
	indexers := cache.Indexers{"node": func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}}
	if err := d.informer.AddIndexers(indexers); err != nil {
		return err
	}
	if err := d.firstList(1); err != nil {
		return err
	}
	indexer := d.informer.GetIndexer()
	lister := corelisters.NewPodLister(indexer)
	sorted, err := lister.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(sorted, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	type key struct{ namespace, name string }
	var keys []key
	hash := ""
	for _, pod := range sorted {
		keys = append(keys, key{pod.Namespace, pod.Name})
		if value, found := pod.Labels[selected]; found && hash == "" {
			hash = value
		}
	}
	nodes := indexer.ListIndexFuncValues("node")
	selector := labels.SelectorFromSet(labels.Set{selected: hash})
	count := len(keys)
	sum := func(pods []*corev1.Pod) (all int) {
		for _, pod := range pods {
			all += int(version(pod))
		}
		return all
	}
	get := func(nth int) int {
		pod, err := lister.Pods(keys[nth%count].namespace).Get(keys[nth%count].name)
		fail(err)
		return int(version(pod))
	}
	body := func(nth int) int {
		pod, err := lister.Pods(keys[nth%count].namespace).Get(keys[nth%count].name)
		fail(err)
		return len(pod.Spec.Containers)
	}
	list := func(int) int {
		pods, _ := lister.List(labels.Everything())
		return len(pods)
	}
	scattered := func(nth int) int { return nth * 7919 % count }
	for nth := range 2 * same {
		body(scattered(nth % same))
	}
	ways := map[string]func(int) int{
		"get":         func(nth int) int { return get(scattered(nth)) },
		"body_same":   func(nth int) int { return body(scattered(nth % same)) },
		"body_random": func(nth int) int { return body(scattered(nth)) },
		"index": func(nth int) int {
			objects, _ := indexer.ByIndex("node", nodes[scattered(nth)%len(nodes)])
			all := 0
			for _, object := range objects {
				all += int(version(object.(*corev1.Pod)))
			}
			return all
		},
		"namespace": func(nth int) int {
			pods, _ := lister.Pods(keys[scattered(nth)].namespace).List(labels.Everything())
			return sum(pods)
		},
		"select": func(int) int {
			pods, _ := lister.List(selector)
			return sum(pods)
		},
		"list": list,
	}
	for name, read := range ways {
		d.figures["read."+name] = measure(d.o.readMillis, read)
	}
	if len(d.o.rates) == 0 {
		return nil
	}
	for name, read := range map[string]func(int) int{"get": get, "list": list} {
		var stop atomic.Bool
		var done atomic.Int64
		var group sync.WaitGroup
		for thread := range 2 {
			group.Go(func() {
				for nth := thread; !stop.Load(); nth += 2 {
					sink.Store(int64(read(nth * 7919 % count)))
					done.Add(1)
				}
			})
		}
		start := time.Now()
		delays, err := d.delays(d.o.rates[0])
		stop.Store(true)
		elapsed := time.Since(start)
		group.Wait()
		if err != nil {
			return err
		}
		d.figures[fmt.Sprintf("beside.%s.reads", name)] = float64(done.Load()) / elapsed.Seconds()
		d.percentiles(fmt.Sprintf("beside.%s.delay", name), delays)
	}
	return nil
}

var sink atomic.Int64

// measure is the median of several batches in nanoseconds of CPU, after one to warm up.
func measure(millis int, read func(int) int) float64 {
	batch := time.Duration(millis) * time.Millisecond / batches
	nth, burst := 0, 64
	once := time.Now()
	sink.Store(int64(read(nth)))
	if time.Since(once) > 20*time.Microsecond {
		burst = 1
	}
	run := func() float64 {
		start, before, first := time.Now(), cpu(), nth
		for time.Since(start) < batch {
			for range burst {
				sink.Store(int64(read(nth)))
				nth++
			}
		}
		return float64((cpu() - before).Nanoseconds()) / float64(nth-first)
	}
	run()
	var found []float64
	for range batches {
		found = append(found, run())
	}
	slices.Sort(found)
	return found[batches/2]
}
