package helper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

const (
	// maxOutput bounds each of a helper's outputs, in bytes.
	maxOutput = 10 << 20
	// pipeGrace is how long outputs may stay open after the helper's end: by
	// what it left running, such as a tunnel.
	pipeGrace = 2 * time.Second
)

// output is what one call of a helper came to. err says that the exit status
// means nothing, as the rest of a sentence about the helper.
type output struct {
	stdout, stderr []byte
	code           int
	err            error
}

// run calls the helper and returns when it has ended. After limit, at an output
// that is too long, and when ctx ends, it is made to.
func (h *Helper) run(ctx context.Context, limit time.Duration, args []string) output {
	done := make(chan output, 1)
	go func() {
		// The kernel's signal for the parent's death means the thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- h.call(ctx, limit, args)
	}()
	return <-done
}

func (h *Helper) call(ctx context.Context, limit time.Duration, args []string) output {
	if ctx.Err() != nil {
		return output{err: errors.New("was not started: this server is ending")}
	}
	long := make(chan struct{})
	var once sync.Once
	overflow := func() { once.Do(func() { close(long) }) }
	stdout, stderr := &bounded{over: overflow}, &bounded{over: overflow}
	argv := append(h.cfg.Argv[:len(h.cfg.Argv):len(h.cfg.Argv)], args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, pipeGrace
	cmd.Env = append(h.environ(), "NO_COLOR=1")
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return output{err: fmt.Errorf("could not be started: %w", err)}
	}
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	var why error
	waiting.Go(func() { why = h.supervise(ctx, limit, cmd, long, ended) })
	waitErr := cmd.Wait()
	close(ended)
	waiting.Wait()
	o := output{stdout: stdout.bytes(), stderr: stderr.bytes(), code: cmd.ProcessState.ExitCode(), err: why}
	var exit *exec.ExitError
	switch {
	case o.err != nil:
	case stdout.full() || stderr.full():
		o.err = errOverflow
	case waitErr != nil && !errors.As(waitErr, &exit) && !errors.Is(waitErr, exec.ErrWaitDelay):
		o.err = fmt.Errorf("failed: %w", waitErr)
	case o.code < 0:
		o.err = fmt.Errorf("was ended by a signal (%s)", cmd.ProcessState)
	}
	return o
}

var errOverflow = errors.New("wrote more than 10 MiB")

// supervise waits for the helper's end and makes it end when it must. It
// returns why, nil if the helper ended by itself.
func (h *Helper) supervise(ctx context.Context, limit time.Duration, cmd *exec.Cmd, long, ended <-chan struct{}) error {
	var why error
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		why = fmt.Errorf("timed out after %s", limit.Round(time.Millisecond))
	case <-long:
		why = errOverflow
	case <-ctx.Done():
		why = errors.New("was ended because this server is ending")
	}
	h.cfg.Log.Debug("ending the browser lease helper", "reason", why)
	terminateGroup(cmd)
	grace := time.NewTimer(h.cfg.Times.TermGrace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
	killGroup(cmd) // the helper itself, or what it left behind
	<-ended
	return why
}

func (h *Helper) environ() []string {
	if h.cfg.Env != nil {
		return h.cfg.Env[:len(h.cfg.Env):len(h.cfg.Env)]
	}
	return os.Environ()
}

// bounded keeps the first maxOutput bytes.
type bounded struct {
	over func() // called at each byte beyond

	mu   sync.Mutex
	data []byte
	long bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), maxOutput-len(b.data))
	b.data = append(b.data, p[:n]...)
	if n < len(p) {
		b.long = true
		b.over()
	}
	return len(p), nil
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data
}

func (b *bounded) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.long
}
