package proxy

import (
	"container/heap"
	"time"
)

// Clock holds the deadlines of an event loop with one timer, so that no deadline
// rings after it was cancelled. It belongs to one goroutine, which waits for the
// channel of Next and then calls Ring.
type Clock struct {
	heap  alarms
	timer *time.Timer
}

// Alarm is one deadline.
type Alarm struct {
	at    time.Time
	call  func()
	index int // in the heap, -1 if it is not there
}

// NewClock returns a Clock without deadlines.
func NewClock() *Clock {
	a := &Clock{timer: time.NewTimer(0)}
	a.timer.Stop()
	return a
}

// After calls call in the event loop when d has passed.
func (a *Clock) After(d time.Duration, call func()) *Alarm {
	al := &Alarm{at: time.Now().Add(d), call: call}
	heap.Push(&a.heap, al)
	return al
}

// Cancel takes al back. It may be nil or have rung.
func (a *Clock) Cancel(al *Alarm) {
	if al != nil && al.index >= 0 {
		heap.Remove(&a.heap, al.index)
	}
}

// Next sets the timer to the earliest deadline and returns its channel.
func (a *Clock) Next() <-chan time.Time {
	if len(a.heap) == 0 {
		return nil
	}
	a.timer.Reset(time.Until(a.heap[0].at))
	return a.timer.C
}

// Ring calls what is due.
func (a *Clock) Ring() {
	for len(a.heap) > 0 && !a.heap[0].at.After(time.Now()) {
		heap.Pop(&a.heap).(*Alarm).call()
	}
}

// alarms implements heap.Interface by deadline.
type alarms []*Alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarms) Push(x any) {
	x.(*Alarm).index = len(*h)
	*h = append(*h, x.(*Alarm))
}

func (h *alarms) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	last.index = -1
	return last
}
