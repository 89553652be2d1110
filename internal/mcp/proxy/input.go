package proxy

import "io"

// Input queues what goes to the child, so that a child which does not read
// never makes its bridge wait. All methods belong to one goroutine.
type Input struct {
	pump   *pump
	closed bool // after what is queued
	ended  bool // the writing goroutine was told to end
}

// NewInput returns an Input that writes to w from a goroutine of its own.
func NewInput(w io.WriteCloser) *Input {
	write := func(b []byte) error { _, err := w.Write(b); return err }
	return &Input{pump: newPump(write, func() { _ = w.Close() })}
}

// Write queues b, which must not be changed afterwards. After Close or a write
// error it does nothing.
func (in *Input) Write(b []byte) {
	if !in.closed {
		in.pump.push(buffer{data: b})
	}
}

// Queued is the number of bytes that the child has not taken yet.
func (in *Input) Queued() int { return in.pump.bytes }

// Results delivers the outcome of each write; every value must be given to Wrote.
func (in *Input) Results() <-chan error { return in.pump.results }

// Wrote takes a value from Results. After an error nothing more is written.
func (in *Input) Wrote(err error) {
	in.pump.wrote(err)
	in.finish()
}

// Close ends the child's input once everything queued before it is written.
func (in *Input) Close() {
	in.closed = true
	in.finish()
}

func (in *Input) finish() {
	if in.closed && !in.ended && in.pump.idle() {
		in.end()
	}
}

func (in *Input) end() {
	in.ended = true
	in.pump.stop()
}

// Wait drops what is queued and waits for the writing goroutine, which has
// closed the child's input when Wait returns. A write under way must have been
// made to fail, which destroying the child does.
func (in *Input) Wait() {
	in.closed = true
	if !in.ended {
		in.end()
	}
	<-in.pump.done
}
