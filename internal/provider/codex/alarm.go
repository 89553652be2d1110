package codex

import (
	"container/heap"
	"time"
)

// alarms are the deadlines of a bridge. They belong to its event loop, which
// waits for the channel of next and then calls ring.
type alarms struct {
	heap  alarmHeap
	timer *time.Timer
}

// alarm is one deadline.
type alarm struct {
	at    time.Time
	call  func()
	index int // in the heap, -1 if it is not there
}

func newAlarms() *alarms {
	a := &alarms{timer: time.NewTimer(0)}
	a.timer.Stop()
	return a
}

// after calls call in the event loop when d has passed.
func (a *alarms) after(d time.Duration, call func()) *alarm {
	al := &alarm{at: time.Now().Add(d), call: call}
	heap.Push(&a.heap, al)
	return al
}

// cancel takes al back. It may be nil or have rung.
func (a *alarms) cancel(al *alarm) {
	if al != nil && al.index >= 0 {
		heap.Remove(&a.heap, al.index)
	}
}

// next sets the timer to the earliest deadline and returns its channel.
func (a *alarms) next() <-chan time.Time {
	if len(a.heap) == 0 {
		return nil
	}
	a.timer.Reset(time.Until(a.heap[0].at))
	return a.timer.C
}

// ring calls what is due.
func (a *alarms) ring() {
	for len(a.heap) > 0 && !a.heap[0].at.After(time.Now()) {
		heap.Pop(&a.heap).(*alarm).call()
	}
}

// alarmHeap implements heap.Interface by deadline.
type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	x.(*alarm).index = len(*h)
	*h = append(*h, x.(*alarm))
}

func (h *alarmHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	last.index = -1
	return last
}
