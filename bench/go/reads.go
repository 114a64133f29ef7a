package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	indexers := cache.Indexers{
		"node": func(object any) ([]string, error) {
			return []string{object.(*corev1.Pod).Spec.NodeName}, nil
		},
		"owner": func(object any) ([]string, error) {
			if owner := metav1.GetControllerOf(object.(*corev1.Pod)); owner != nil {
				return []string{string(owner.UID)}, nil
			}
			return nil, nil
		},
	}
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
	var owned []family
	hash := ""
	for _, pod := range sorted {
		keys = append(keys, key{pod.Namespace, pod.Name})
		if owner := metav1.GetControllerOf(pod); owner != nil {
			owned = append(owned, family{string(owner.UID), pod.Namespace, pod.Name})
		}
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
	families := families(owned)
	fieldsOf := func(nth int) int {
		pod, err := lister.Pods(keys[nth%count].namespace).Get(keys[nth%count].name)
		fail(err)
		return fields(pod)
	}
	list := func(int) int {
		pods, _ := lister.List(labels.Everything())
		return len(pods)
	}
	scattered := func(nth int) int { return nth * 7919 % count }
	// Every body once, and once more.
	for _, name := range []string{"body_once", "body_again"} {
		before := cpu()
		for nth := range count {
			sink.Store(int64(body(scattered(nth))))
		}
		d.figures["read."+name] = float64((cpu() - before).Nanoseconds()) / float64(count)
	}
	for nth := range 2 * same {
		body(scattered(nth % same))
	}
	ways := map[string]func(int) int{
		"get":         func(nth int) int { return get(scattered(nth)) },
		"body_same":   func(nth int) int { return body(scattered(nth % same)) },
		"body_random": func(nth int) int { return body(scattered(nth)) },
		"fields":      func(nth int) int { return fieldsOf(scattered(nth)) },
		"children": func(nth int) int {
			objects, _ := indexer.ByIndex("owner", families[nth%len(families)].owner)
			all := 0
			for _, object := range objects {
				all += int(version(object.(*corev1.Pod)))
			}
			return all
		},
		"reconcile": func(nth int) int {
			family := families[nth%len(families)]
			pod, err := lister.Pods(family.namespace).Get(family.name)
			fail(err)
			all := fields(pod)
			objects, _ := indexer.ByIndex("owner", family.owner)
			for _, object := range objects {
				all += fields(object.(*corev1.Pod))
			}
			return all
		},
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
	// Nothing is decoded later, so reading all bodies makes no difference.
	d.figures["read.fields_after"] = d.figures["read.fields"]
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

// family is an owner and the first of its objects.
type family struct{ owner, namespace, name string }

// families are the owners of about ten objects; all owners if there are none.
func families(owned []family) []family {
	sizes := map[string]int{}
	var first, fitting []family
	for _, each := range owned {
		if sizes[each.owner]++; sizes[each.owner] == 1 {
			first = append(first, each)
		}
	}
	for _, each := range first {
		if size := sizes[each.owner]; 9 <= size && size <= 11 {
			fitting = append(fitting, each)
		}
	}
	if len(fitting) == 0 {
		return first
	}
	return fitting
}

// fields reads five fields.
func fields(pod *corev1.Pod) int {
	return len(pod.Spec.NodeName) + len(pod.Spec.ServiceAccountName) + len(pod.Status.Phase) +
		len(pod.Status.PodIP) + len(pod.Status.HostIP)
}

// many measures gets from very many objects.
func (d *drive) many() error {
	if err := d.firstList(1); err != nil {
		return err
	}
	if err := d.updates("keys", d.o.updates); err != nil {
		return err
	}
	indexer := d.informer.GetIndexer()
	lister := corelisters.NewPodLister(indexer)
	keys := indexer.ListKeys()
	slices.Sort(keys)
	d.figures["read.get"] = measure(d.o.readMillis, func(nth int) int {
		namespace, name, _ := cache.SplitMetaNamespaceKey(keys[nth*7919%len(keys)])
		pod, err := lister.Pods(namespace).Get(name)
		fail(err)
		return int(version(pod))
	})
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
