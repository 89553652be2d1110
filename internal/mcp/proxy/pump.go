package proxy

import "slices"

// pump writes queued buffers in order, one at a time, in a goroutine of its
// own. Its owner calls every method from one goroutine and calls wrote for each
// value received from results.
type pump struct {
	queue   []buffer
	busy    int // bytes handed to the writing goroutine, 0 if it is idle
	bytes   int // bytes queued and handed over
	own     int // bytes queued of messages that are not native
	dead    bool
	work    chan []byte
	results chan error
	done    chan struct{}
}

// buffer is what one write takes. A tagged one can be dropped while it waits.
type buffer struct {
	data []byte
	tag  any
	own  bool
}

// newPump starts the writing goroutine. When the work is closed it calls
// finish, if there is one.
func newPump(write func([]byte) error, finish func()) *pump {
	p := &pump{work: make(chan []byte, 1), results: make(chan error, 1), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for b := range p.work {
			p.results <- write(b)
		}
		if finish != nil {
			finish()
		}
	}()
	return p
}

func (p *pump) push(b buffer) {
	if p.dead || len(b.data) == 0 {
		return
	}
	p.queue = append(p.queue, b)
	p.bytes += len(b.data)
	if b.own {
		p.own += len(b.data)
	}
	p.next()
}

// next hands the oldest buffer to the writing goroutine if that is idle.
func (p *pump) next() {
	if p.busy > 0 || len(p.queue) == 0 {
		return
	}
	b := p.queue[0]
	p.queue[0] = buffer{}
	p.queue = p.queue[1:]
	p.busy = len(b.data)
	if b.own {
		p.own -= len(b.data)
	}
	p.work <- b.data // never waits: it holds one and the goroutine is idle
}

// wrote takes the result of a write. After an error nothing is written.
func (p *pump) wrote(err error) {
	p.bytes -= p.busy
	p.busy = 0
	if err != nil {
		p.dead, p.queue, p.bytes, p.own = true, nil, 0, 0
		return
	}
	p.next()
}

// drop removes the buffers with the tag that the writing goroutine has not
// got yet, and reports whether there were any.
func (p *pump) drop(tag any) bool {
	n := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(b buffer) bool {
		if b.tag != tag {
			return false
		}
		p.bytes -= len(b.data)
		if b.own {
			p.own -= len(b.data)
		}
		return true
	})
	return len(p.queue) < n
}

func (p *pump) idle() bool { return p.busy == 0 && len(p.queue) == 0 }

// stop ends the writing goroutine after the write at hand. Nothing may be
// pushed afterwards.
func (p *pump) stop() {
	p.dead, p.queue = true, nil
	close(p.work)
}
