package oneshot

import (
	"bytes"
	"io"
	"regexp"
	"sync"
	"time"
)

// A CLI without a login may print where to log in, and wait: nobody will.

const (
	// promptSize is the most that a CLI prints, in bytes, when it asks for a login.
	promptSize = 8 << 10
	// LoginPatience is how long such a CLI may then be silent.
	LoginPatience = 10 * time.Second
)

// loginPage matches the address of a page to log in at.
var loginPage = regexp.MustCompile(`(?i)https://\S*(oauth|authori[sz]e|log-?in|sign-?in|device|/auth)`)

// loginPrompt watches what a command writes, from both of its streams.
type loginPrompt struct {
	patience time.Duration
	asked    chan struct{} // closed when the command asked and then waited

	mu    sync.Mutex
	seen  []byte // up to promptSize and one
	timer *time.Timer
	over  bool
}

// watchLogin watches for so long a silence; 0 means that nothing is watched.
func watchLogin(patience time.Duration) *loginPrompt {
	return &loginPrompt{patience: patience, asked: make(chan struct{})}
}

// of returns r, watched.
func (p *loginPrompt) of(r io.Reader) io.Reader {
	if p.patience <= 0 {
		return r
	}
	return io.TeeReader(r, p)
}

// Write takes what was read.
func (p *loginPrompt) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(bytes.TrimSpace(b)) == 0 {
		return len(b), nil
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.seen = append(p.seen, b[:min(len(b), promptSize+1-len(p.seen))]...)
	switch {
	case len(p.seen) > promptSize: // that is an answer
		p.over = true
	case loginPage.Match(p.seen):
		p.timer = time.AfterFunc(p.patience, p.waited)
	}
	return len(b), nil
}

func (p *loginPrompt) waited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		close(p.asked)
	}
}

// stop ends the watching.
func (p *loginPrompt) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
