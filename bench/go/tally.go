package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what handlers hear, and notes when if asked to.
type tally struct {
	heard, wanted atomic.Int64
	reached       chan struct{}
	timing        atomic.Bool
	mutex         sync.Mutex
	times         map[uint64]int64
}

func newTally() *tally { return &tally{reached: make(chan struct{}, 1)} }

func (t *tally) hear(version func() uint64) {
	if t.timing.Load() {
		now := time.Now().UnixNano()
		t.mutex.Lock()
		t.times[version()] = now
		t.mutex.Unlock()
	}
	if t.heard.Add(1) == t.wanted.Load() {
		select {
		case t.reached <- struct{}{}:
		default:
		}
	}
}

// want wants so many events more than now: to be called before they can come.
func (t *tally) want(more int) { t.wanted.Store(t.heard.Load() + int64(more)) }

// wait waits for what is wanted; false if nothing has come for a long time.
func (t *tally) wait() bool {
	last, since := t.heard.Load(), time.Now()
	for t.heard.Load() < t.wanted.Load() {
		select {
		case <-t.reached:
		case <-time.After(200 * time.Millisecond):
		}
		if heard := t.heard.Load(); heard != last {
			last, since = heard, time.Now()
		} else if time.Since(since) > 30*time.Second {
			return false
		}
	}
	return true
}

func (t *tally) time(room int) {
	t.mutex.Lock()
	t.times = make(map[uint64]int64, room)
	t.mutex.Unlock()
	t.timing.Store(true)
}

func (t *tally) timed() map[uint64]int64 {
	t.timing.Store(false)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.times
}
