package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// tally counts the events of a handler, and optionally records their times.
type tally struct {
	received, wanted atomic.Int64
	reached          chan struct{}
	timing           atomic.Bool
	mutex            sync.Mutex
	times            map[uint64]int64
}

func newTally() *tally { return &tally{reached: make(chan struct{}, 1)} }

func (t *tally) record(version func() uint64) {
	if t.timing.Load() {
		now := time.Now().UnixNano()
		t.mutex.Lock()
		t.times[version()] = now
		t.mutex.Unlock()
	}
	if t.received.Add(1) == t.wanted.Load() {
		select {
		case t.reached <- struct{}{}:
		default:
		}
	}
}

// want expects this many more events; must be called before they can arrive.
func (t *tally) want(more int) { t.wanted.Store(t.received.Load() + int64(more)) }

// wait waits for the expected events; returns false if none arrives for that long.
func (t *tally) wait(longest time.Duration) bool {
	last, since := t.received.Load(), time.Now()
	for t.received.Load() < t.wanted.Load() {
		select {
		case <-t.reached:
		case <-time.After(200 * time.Millisecond):
		}
		if received := t.received.Load(); received != last {
			last, since = received, time.Now()
		} else if time.Since(since) > longest {
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
