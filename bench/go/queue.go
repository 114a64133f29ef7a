package main

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	keyCount  = 100_000
	queueRuns = 3
	atATime   = 1_000
)

// queue measures the work queue: nanoseconds of CPU time per item, the minimum of several runs
// (rig/src/bin/queue.rs).
func queue(o options) map[string]float64 {
	figures := map[string]float64{}
	keys := make([]string, keyCount)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%03d/deployment-%06d-7c5ddbdf54", i%100, i)
	}
	rounds := (o.items + keyCount - 1) / keyCount
	measure := func(name string, items int, run func(workqueue.TypedRateLimitingInterface[string])) {
		least := time.Duration(1 << 62)
		for range queueRuns {
			before := cpu()
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
			run(queue)
			queue.ShutDown()
			least = min(least, cpu()-before)
		}
		figures[name] = float64(least.Nanoseconds()) / float64(items)
	}
	type work = workqueue.TypedRateLimitingInterface[string]
	measure("add, next, done", o.items, func(queue work) {
		for i := range o.items {
			queue.Add(keys[i%keyCount])
			key, _ := queue.Get()
			queue.Done(key)
		}
	})
	measure("add, next, forget", o.items, func(queue work) {
		for i := range o.items {
			queue.Add(keys[i%keyCount])
			key, _ := queue.Get()
			queue.Forget(key)
			queue.Done(key)
		}
	})
	measure("100,000 added, then taken and done", o.items, func(queue work) {
		for range rounds {
			for _, key := range keys {
				queue.Add(key)
			}
			for range keys {
				key, _ := queue.Get()
				queue.Done(key)
			}
		}
	})
	for _, workers := range []int{1, 2, 8} {
		measure(fmt.Sprintf("one adder, %d workers, 1,000 at a time", workers), o.items, func(queue work) {
			var group, round sync.WaitGroup
			for range workers {
				group.Go(func() {
					for {
						key, stop := queue.Get()
						if stop {
							return
						}
						queue.Done(key)
						round.Done()
					}
				})
			}
			for i := range o.items {
				if i%atATime == 0 {
					round.Wait()
					round.Add(atATime)
				}
				queue.Add(keys[i%keyCount])
			}
			round.Wait()
			queue.ShutDown()
			group.Wait()
		})
	}
	measure("delayed adds", o.items, func(queue work) {
		for range rounds {
			for i, key := range keys {
				queue.AddAfter(key, time.Hour-time.Duration((i*7919)%100_000)*time.Millisecond)
			}
		}
	})
	measure("delayed by 1 to 50 ms, taken and done", keyCount, func(queue work) {
		for i, key := range keys {
			queue.AddAfter(key, time.Millisecond+time.Duration((i*7919)%50_000)*time.Microsecond)
		}
		for range keys {
			key, _ := queue.Get()
			queue.Done(key)
		}
	})
	return figures
}
